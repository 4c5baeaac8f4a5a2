"""Ten processes of `tickoff serve` with wrong clocks, servers that are killed, stores that are restarted."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import uuid4

import pytest
from dev.servers import Server, postgres_server, redis_server

from tests.conftest import start
from tickoff.leases.referee import Referee
from tickoff.model import Ending, Outcome
from tickoff.stores import open_store
from tickoff.ticks.presence import servers

from .server import TTL, Fleet, Line, lines, wait_until

SECONDS = 60.0 if os.environ.get("TICKOFF_FULL") else 10.0
SKEWS = [15 + skew for skew in (-5, -4, -3, -1.5, -0.4, 0, 0.7, 2, 3.5, 5)]
"""Seconds by which the clocks of the servers are ahead of the store's."""


@pytest.fixture
def referee(shared_url: str) -> Iterator[Referee]:
    """A look at each store in turn, by a clock that is right."""
    made = Referee(open_store(shared_url))
    yield made
    made.close()


def was_run_before(referee: Referee, name: str) -> None:
    """Make the fleet believe that it ran this job before, so that it catches up at once."""
    bid = referee.tick_bid(name, 1000, 1000)
    answer = referee.store.race([bid])[0]
    assert answer.ok
    lease = referee.conclude(bid, type("Sent", (), {"answer": answer, "sent": time.monotonic()})())
    referee.store.settle([Ending(hold=lease.hold(), outcome=Outcome.OK)])  # type: ignore[union-attr]


def no_gap_and_nothing_twice(found: list[Line]) -> bool:
    """Whether these are consecutive seconds."""
    ticks = sorted(line.tick for line in found)
    return ticks == [ticks[0] + i for i in range(len(ticks))]


def test_a_fleet_with_wrong_clocks_and_servers_that_die(
    referee: Referee, shared_url: str, tmp_path: Path
) -> None:
    """An independent log decides: every tick once; a crash is met as the job asked for."""
    beats, crashes = f"beat-{uuid4().hex[:8]}", f"crash-{uuid4().hex[:8]}"
    for name in ("now", "poison"):
        was_run_before(referee, f"{crashes}:{name}")
    log = tmp_path / "log"
    with (
        Fleet(shared_url, beats, log, "beat", SKEWS) as beating,
        Fleet(shared_url, crashes, log, "crash", SKEWS[:8], slots=1) as crashing,
    ):
        assert wait_until(lambda: len(servers(referee, beats)) == 10)
        began = time.monotonic()
        the_skew_is_what_we_made_it(referee, beats)
        crashes_are_met(referee, crashes, log)
        time.sleep(max(0.0, began + SECONDS - time.monotonic()))
        poison_has_ended(referee, crashes, log)
        assert Counter(server.exitcode for server in crashing.servers)[-signal.SIGKILL] == 5
        assert crashing.stop().count(0) == 3
        assert beating.stop() == [0] * 10
    found = lines(log, "beat")
    assert len(found) >= SECONDS - 1
    assert no_gap_and_nothing_twice(found), sorted(line.tick for line in found)
    outcomes = Counter(run.outcome for run in referee.store.history(f"{beats}:beat"))
    assert outcomes == {Outcome.OK: len(found)}
    assert servers(referee, beats) == []


def the_skew_is_what_we_made_it(referee: Referee, namespace: str) -> None:
    """As the servers themselves tell."""
    told = sorted(server.skew for server in servers(referee, namespace))
    assert told == [pytest.approx(skew, abs=1) for skew in SKEWS]


def crashes_are_met(referee: Referee, namespace: str, log: Path) -> None:
    """recover="next": crashed, and the next tick clean; "now": the same tick again, soon."""
    store = referee.store
    assert wait_until(lambda: len(lines(log, "now")) == 2)
    first, second = lines(log, "now")
    assert (first.tick, first.attempt) == (second.tick, second.attempt - 1)
    assert second.at - first.at < TTL + 2
    assert wait_until(lambda: store.history(f"{namespace}:next")[:1] and len(lines(log, "next")) >= 2)
    assert wait_until(lambda: [run.outcome for run in store.history(f"{namespace}:now")][:1] == [Outcome.OK])
    killed, clean = lines(log, "next")[:2]
    assert clean.tick == killed.tick + 3
    assert wait_until(lambda: len(store.history(f"{namespace}:next")) >= 2)
    outcomes = [run.outcome for run in store.history(f"{namespace}:next")][::-1]
    assert outcomes[:2] == [Outcome.CRASHED, Outcome.OK]


def poison_has_ended(referee: Referee, namespace: str, log: Path) -> None:
    """Three servers died of it, and no fourth."""
    assert wait_until(lambda: len(lines(log, "poison")) == 3)
    assert [line.attempt for line in lines(log, "poison")] == [1, 2, 3]
    name = f"{namespace}:poison"
    assert wait_until(lambda: referee.store.read([name])[0].entry.crashed(referee.store.now()))
    time.sleep(0.5)
    assert len(lines(log, "poison")) == 3


@pytest.fixture(params=[redis_server, postgres_server], ids=["redis", "postgres"])
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that may be restarted."""
    made: AbstractContextManager[Server] = request.param()
    yield from start(lambda: made)


def test_a_fleet_goes_on_when_its_store_was_restarted(own_server: Server, tmp_path: Path) -> None:
    """No tick twice, though this Redis forgets everything; ticks during the outage are let go."""
    log = tmp_path / "log"
    with Fleet(own_server.url, "", log, "beat", [0.0, 2.0, -2.0]) as fleet:
        assert wait_until(lambda: len(lines(log, "beat")) >= 2)
        own_server.stop(signal.SIGINT)
        before = len(lines(log, "beat"))
        time.sleep(1.2)
        own_server.start()
        assert wait_until(lambda: len(lines(log, "beat")) >= before + 3)
        assert fleet.stop() == [0, 0, 0]
    ticks = [line.tick for line in lines(log, "beat")]
    assert len(set(ticks)) == len(ticks)
