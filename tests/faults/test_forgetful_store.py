"""A Redis that loses its data under a running holder."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis as redis_py
from dev.servers import Server, redis_server

from tests.conftest import start
from tickoff import Lease, Tickoff


@pytest.fixture(scope="module")
def own_redis() -> Iterator[Server]:
    """A Redis that nobody else uses, to be flushed at will."""
    yield from start(redis_server)


def test_a_flushed_store_gives_no_second_lease_among_servers_that_knew(own_redis: Server, name: str) -> None:
    """The holder asserts its lease again; who knew of it waits; fences neither go back nor repeat."""
    holder, other = Tickoff(own_redis.url), Tickoff(own_redis.url)
    lease = holder.race(name, ttl="1.5s")
    assert isinstance(lease, Lease)
    assert not other.race(name, ttl="1.5s")
    redis_py.Redis(port=own_redis.port).flushall()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert not other.race(name, ttl="1.5s")
        lease.check()
        time.sleep(0.02)
    assert holder.store.read([name])[0].entry.fence == lease.fence
    assert lease.release()
    after = other.race(name, ttl="1.5s")
    assert isinstance(after, Lease)
    assert after.fence > lease.fence
    for jobs in (holder, other):
        jobs.close()


def test_fences_go_on_after_the_store_forgot_all(own_redis: Server, name: str) -> None:
    """Also without a running holder, a server that remembers continues the fences."""
    jobs = Tickoff(own_redis.url)
    fences = []
    for _ in range(4):
        with jobs.lock(name, ttl="0.3s", wait="3s") as lease:
            fences.append(lease.fence)
        redis_py.Redis(port=own_redis.port).flushall()
    assert fences == sorted(set(fences))
    jobs.close()


def test_a_lease_released_on_purpose_is_not_asserted_again(own_redis: Server, name: str) -> None:
    """A key deleted by hand is no lost data: the holder is told, and does not put it back."""
    jobs = Tickoff(own_redis.url)
    lease = jobs.race(name, ttl="0.9s")
    assert isinstance(lease, Lease)
    client = redis_py.Redis(port=own_redis.port)
    client.delete(f"lock:{name}")
    deadline = time.monotonic() + 2
    while not lease.lost:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert client.exists(f"lock:{name}") == 0
    jobs.close()


def test_a_restarted_redis_is_told_the_scripts_again(own_redis: Server, name: str) -> None:
    """A Redis without persistence forgets scripts as well."""
    jobs = Tickoff(own_redis.url)
    with jobs.lock(name):
        pass
    redis_py.Redis(port=own_redis.port).script_flush()
    with jobs.lock(name, wait="60s"):
        pass
    assert jobs.store.read([name, f"{name}-b"])[0].entry.fence > 0
    redis_py.Redis(port=own_redis.port).script_flush()
    assert len(jobs.store.read([name, f"{name}-b"])) == 2
    jobs.close()
