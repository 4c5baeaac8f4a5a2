"""On Redis the lock is the plain recipe's key: servers in other languages exclude us, and are excluded."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest
from dev.servers import Server

from tickoff import Lease, Skipped, Tickoff
from tickoff.model import Bid
from tickoff.names import new_token

COMPARE_AND_DELETE = (
    """if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end"""
)


@pytest.fixture
def jobs(redis: Server) -> Iterator[Tickoff]:
    """A Tickoff on Redis."""
    made = Tickoff(redis.url)
    yield made
    made.close()


def cli(server: Server, *words: str) -> str:
    """What redis-cli answers: another program, which knows nothing of us."""
    program = shutil.which("redis-cli")
    assert program
    command = [program, "-p", str(server.port), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_foreign_lock_makes_us_lose(redis: Server, jobs: Tickoff, name: str) -> None:
    """SET NX EX by another program is a lock we respect, and say so."""
    assert cli(redis, "SET", f"lock:{name}", "foreign", "NX", "EX", "60") == "OK"
    verdict = jobs.race(name)
    assert isinstance(verdict, Skipped)
    assert verdict.why == "held"
    assert "other than Tickoff" in str(verdict)
    assert verdict.until is not None


def a_tick(jobs: Tickoff, name: str) -> Bid:
    """A bid for a tick of a moment ago."""
    tick = jobs.store.now() - 1000
    return Bid(name=name, token=new_token(), owner="a", ttl=60_000, tick=tick, scheduled=True)


def test_a_foreign_lock_keeps_a_tick_out(redis: Server, jobs: Tickoff, name: str) -> None:
    """The first one of its name as well as a later one."""
    first = a_tick(jobs, name)
    assert jobs.store.race([first])[0].ok
    assert jobs.store.release(name, first.token)
    for one in (name, f"{name}-new"):
        assert cli(redis, "SET", f"lock:{one}", "foreign", "NX", "EX", "60") == "OK"
        assert jobs.store.race([a_tick(jobs, one)])[0].why == "held"
        assert cli(redis, "GET", f"lock:{one}") == "foreign"


def test_a_foreign_lock_in_the_place_of_a_tick_is_told_as_foreign(
    redis: Server, jobs: Tickoff, name: str
) -> None:
    """Somebody removed our key by hand, and took the name: a loser is told of the holder there is."""
    bid = a_tick(jobs, name)
    assert jobs.store.race([bid])[0].ok
    cli(redis, "SET", f"lock:{name}", "foreign", "EX", "60")
    lost = jobs.store.race([replace(bid, token=new_token())])[0]
    assert (lost.why, lost.entry.token, lost.entry.owner) == ("held", "foreign", "")


def test_our_lock_makes_a_foreign_program_lose(redis: Server, jobs: Tickoff, name: str) -> None:
    """While we hold it, SET NX by another program does nothing."""
    lease = jobs.race(name)
    assert isinstance(lease, Lease)
    assert cli(redis, "SET", f"lock:{name}", "foreign", "NX", "EX", "60") == ""
    assert cli(redis, "GET", f"lock:{name}") == lease.token
    assert 55 <= int(cli(redis, "TTL", f"lock:{name}")) <= 60


def test_a_foreign_release_frees_the_name(redis: Server, jobs: Tickoff, name: str) -> None:
    """Compare-and-delete by another program frees what it took, and nothing else."""
    cli(redis, "SET", f"lock:{name}", "foreign", "NX", "EX", "60")
    assert cli(redis, "EVAL", COMPARE_AND_DELETE, "1", f"lock:{name}", "wrong") == "0"
    assert not jobs.race(name)
    assert cli(redis, "EVAL", COMPARE_AND_DELETE, "1", f"lock:{name}", "foreign") == "1"
    assert jobs.race(name)


def test_our_release_leaves_the_name_free_for_all(redis: Server, jobs: Tickoff, name: str) -> None:
    """After our release, another program can take the name."""
    with jobs.lock(name):
        pass
    assert cli(redis, "SET", f"lock:{name}", "foreign", "NX", "EX", "60") == "OK"


def test_a_lock_removed_on_purpose_is_lost_and_stays_removed(redis: Server, jobs: Tickoff, name: str) -> None:
    """When somebody deletes our key by hand, the next renewal tells us; the key is not put back."""
    lease = jobs.race(name)
    assert isinstance(lease, Lease)
    cli(redis, "DEL", f"lock:{name}")
    assert not jobs.store.renew([lease.hold()])[0].ok
    assert cli(redis, "EXISTS", f"lock:{name}") == "0"


def test_all_data_of_a_name_is_in_one_slot(redis: Server, jobs: Tickoff, name: str) -> None:
    """Every other key of a name is tagged with its lock's key, so a cluster keeps them together."""
    with jobs.lock(name):
        keys = cli(redis, "KEYS", f"*{name}*").split()
    assert f"lock:{name}" in keys
    assert all(key.startswith(f"tickoff:{{lock:{name}}}") for key in keys if key != f"lock:{name}")
    assert int(cli(redis, "TTL", f"tickoff:{{lock:{name}}}")) > 6 * 24 * 3600


def test_the_marks_of_a_scheduled_name_outlive_a_plain_lock_on_it(
    redis: Server, jobs: Tickoff, name: str
) -> None:
    """Data of a name with a schedule never expires: somebody who locks it by hand does not change that."""
    bid = a_tick(jobs, name)
    assert jobs.store.race([bid])[0].ok
    assert jobs.store.release(name, bid.token)
    with jobs.lock(name):
        assert cli(redis, "TTL", f"tickoff:{{lock:{name}}}") == "-1"


@pytest.mark.parametrize("tick", [0, 1])
def test_a_foreign_key_that_is_no_string_is_a_lock_too(
    redis: Server, jobs: Tickoff, name: str, tick: int
) -> None:
    """Other libraries lock by a hash of this name, to which SET NX would lose, too; it is left as it is."""
    cli(redis, "HSET", f"lock:{name}", "foreign", "1")
    cli(redis, "EXPIRE", f"lock:{name}", "60")
    answer = jobs.store.race([Bid(name=name, token=new_token(), owner="h:1:x", ttl=1000, tick=tick)])[0]
    assert answer.why == "held"
    assert 55_000 < answer.entry.until - answer.now <= 60_000
    assert cli(redis, "HGET", f"lock:{name}", "foreign") == "1"
