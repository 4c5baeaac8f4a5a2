"""Answers that never arrive, requests that arrive too late, stores that hang."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from dev.proxy import Mode, Proxy, proxy_to
from dev.servers import Server

from tickoff import Lease, LeaseLost, StoreUnreachable, Tickoff
from tickoff.leases.referee import Referee
from tickoff.model import Known, Outcome
from tickoff.stores import open_store
from tickoff.stores.base import IO_LIMIT, LeaseStore

_WRITE = {"redis": b"EVALSHA", "postgres": b"INSERT", "mariadb": b"INSERT"}
"""What the request that wins a new name contains."""

NETWORKED = ("redis", "postgres", "mariadb")


@pytest.fixture(params=NETWORKED)
def server(request: pytest.FixtureRequest) -> Server:
    """Each store that is reached over a network."""
    running: Server = request.getfixturevalue(request.param)
    return running


@contextmanager
def behind_proxy(server: Server, limit: float = 0.5) -> Iterator[tuple[Proxy, Referee]]:
    """A referee whose store is reached through a proxy, with a short I/O limit."""
    with proxy_to(server.port) as proxy:
        url = server.url.replace(str(server.port), str(proxy.port))
        referee = Referee(open_store(url).within(limit))
        warm_up = referee.bid("warm-up", 1000)
        referee.store.race([warm_up])
        referee.store.release(warm_up.name, warm_up.token)
        referee.store.withdraw(warm_up.name, warm_up.token)
        try:
            yield proxy, referee
        finally:
            referee.close()


@pytest.fixture
def direct(server: Server) -> Iterator[LeaseStore]:
    """The same store without the proxy."""
    store = open_store(server.url)
    yield store
    store.close()


def eventually(condition: object, limit: float = 5.0) -> bool:
    """Whether the condition becomes true in time."""
    assert callable(condition)
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_a_win_whose_reply_was_lost_is_found_to_be_ours(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """The grant's answer was dropped: racing again with the same token finds the lease."""
    with behind_proxy(server) as (proxy, referee):
        proxy.drop_after = _WRITE[server.name]

        def heal_once_granted() -> None:
            assert eventually(lambda: direct.read([name])[0].ok)
            proxy.mode = Mode.PASS
            proxy.reset()

        healer = threading.Thread(target=heal_once_granted)
        healer.start()
        bid = referee.bid(name, 60_000)
        lease = referee.race(bid)
        healer.join()
        assert isinstance(lease, Lease)
        assert lease.token == bid.token
        kept = direct.read([name])[0].entry
        assert (kept.token, kept.fence) == (bid.token, lease.fence)
        assert lease.release()
        assert not direct.read([name])[0].ok


def test_a_release_whose_reply_was_lost_is_not_a_lost_lease(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """The lock was freed, the answer dropped: leaving the block does not claim that it was lost."""
    with behind_proxy(server) as (proxy, referee):
        lease = referee.race(referee.bid(name, 60_000))
        assert isinstance(lease, Lease)

        def heal_once_freed() -> None:
            assert eventually(lambda: not direct.read([name])[0].ok)
            proxy.mode = Mode.PASS
            proxy.reset()

        healer = threading.Thread(target=heal_once_freed)
        with lease:
            proxy.drop_after = _WRITE[server.name].replace(b"INSERT", b"UPDATE")
            healer.start()
        healer.join()
        assert not lease.lost


def test_an_outage_is_an_error_and_bounded(server: Server, direct: LeaseStore, name: str) -> None:
    """A store that does not answer raises in bounded time; it never looks like a lost race."""
    with behind_proxy(server) as (proxy, referee):
        proxy.mode = Mode.HOLD
        began = time.monotonic()
        with pytest.raises(StoreUnreachable, match="did not answer"):
            referee.race(referee.bid(name, 60_000))
        assert time.monotonic() - began < 6


def test_a_timed_out_race_wins_nothing_when_it_arrives_later(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """The request arrives after its caller gave up: the tombstone of its token is in its way."""
    with behind_proxy(server) as (proxy, referee):
        bid = referee.bid(name, 60_000)
        proxy.delay = 2.0
        with pytest.raises(StoreUnreachable):
            referee.race(bid)
        proxy.delay = 0.0
        time.sleep(2.5)  # past the arrival of both delayed requests
        assert eventually(lambda: referee.keeper.withdrawals == 0, 15)
        assert not direct.read([name])[0].ok
        assert not direct.race([bid])[0].ok


def test_a_cancelled_async_acquire_leaves_no_lease(server: Server, direct: LeaseStore, name: str) -> None:
    """A task cancelled while its request is under way holds nothing, whenever that arrives."""
    with proxy_to(server.port) as proxy:
        jobs = Tickoff(server.url.replace(str(server.port), str(proxy.port)))
        jobs.store.now()

        async def acquire() -> None:
            async with jobs.lock(name, ttl="60s"):
                pytest.fail("the lock must not be entered")

        async def give_up() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(acquire(), 0.3)

        proxy.delay = 1.5
        asyncio.run(give_up())
        proxy.delay = 0.0
        time.sleep(2.0)
        assert eventually(lambda: not direct.read([name])[0].ok)
        time.sleep(1.0)
        assert not direct.read([name])[0].ok
        jobs.close()


def test_a_win_that_arrives_after_its_deadline_is_no_win(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """An answer slower than two thirds of the TTL grants nothing: the name is given back at once."""
    with behind_proxy(server, limit=5.0) as (proxy, referee):
        proxy.delay = 1.0
        with pytest.raises(StoreUnreachable, match="given back"):
            referee.race(referee.bid(name, 1200))
        proxy.delay = 0.0
        assert eventually(lambda: referee.keeper.withdrawals == 0, 15)
        assert not direct.read([name])[0].ok


def test_under_a_partition_the_work_is_told_before_the_lease_ends(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """Async work is cancelled at two thirds of the TTL; leaving raises LeaseLost."""
    with proxy_to(server.port) as proxy:
        jobs = Tickoff(server.url.replace(str(server.port), str(proxy.port)))
        told: list[float] = []

        async def work() -> None:
            async with jobs.lock(name, ttl="1.5s"):
                began = time.monotonic()
                proxy.mode = Mode.HOLD
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    told.append(time.monotonic() - began)
                    proxy.mode = Mode.PASS
                    raise

        with pytest.raises(LeaseLost):
            asyncio.run(work())
        assert 0.5 < told[0] < 1.4
        jobs.close()


def test_a_dead_postgres_loses_no_redis_lease(redis: Server, postgres: Server, name: str) -> None:
    """Each store has a keeper of its own, and the judge does no I/O: no deadline is missed."""
    with proxy_to(postgres.port) as proxy:
        healthy = Tickoff(redis.url)
        dying = Tickoff(postgres.url.replace(str(postgres.port), str(proxy.port)))
        kept, lost = healthy.race(name, ttl="0.9s"), dying.race(name, ttl="1.2s")
        assert isinstance(kept, Lease)
        assert isinstance(lost, Lease)
        told: list[float] = []
        lost.on_loss(lambda: told.append(time.monotonic()))
        began = time.monotonic()
        proxy.mode = Mode.HOLD
        while time.monotonic() - began < 3.0:
            kept.check()
            time.sleep(0.02)
        assert lost.lost
        assert told
        assert told[0] - began <= 1.2 * 2 / 3 + 0.3
        assert kept.release()
        proxy.mode = Mode.PASS
        healthy.close()
        dying.close()


def test_a_restarted_store_is_used_again(redis: Server, name: str) -> None:
    """Connections that a server dropped are replaced; the first call after it already works."""
    with behind_proxy(redis) as (proxy, referee):
        for _ in range(3):
            lease = referee.race(referee.bid(name, 60_000))
            assert isinstance(lease, Lease)
            proxy.reset()
            assert lease.release()
            proxy.reset()


@pytest.mark.parametrize("server", ["postgres", "mariadb"], indirect=True)
def test_a_server_that_vanished_amid_a_settlement_does_not_keep_the_job_from_the_others(
    server: Server, direct: LeaseStore, name: str
) -> None:
    """Its database would hold the row for hours: nobody hangs up on it, for there is nobody any more."""
    with behind_proxy(server) as (proxy, referee):
        tick = direct.now() // 1000 * 1000 - 5000
        lease = referee.race(referee.tick_bid(name, 1000, tick))
        assert isinstance(lease, Lease)
        proxy.hold_after = b"UPDATE"
        with pytest.raises(StoreUnreachable):
            referee.settle(lease, Outcome.OK)
        assert proxy.mode is Mode.HOLD

        def next_one_is_won() -> bool:
            with contextlib.suppress(StoreUnreachable):
                return direct.race([later])[0].ok
            return False

        later = replace(referee.tick_bid(name, 1000, tick + 1000), known=Known())
        began = time.monotonic()
        assert eventually(next_one_is_won, 3 * IO_LIMIT)
        assert time.monotonic() - began < 2 * IO_LIMIT
