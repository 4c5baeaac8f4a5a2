"""Runs: sync in threads, async on the loop; how each may end, and what becomes of its slot."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tickoff import LeaseLost
from tickoff.ground.clocks import elapsed
from tickoff.ground.eventloop import EventLoop
from tickoff.leases.lease import Lease
from tickoff.leases.referee import Referee
from tickoff.model import Outcome
from tickoff.stores.memory import MemoryStore
from tickoff.ticks.events import Event, Events, Kind
from tickoff.ticks.job import Job
from tickoff.ticks.runs import Runs
from tickoff.ticks.tick import Tick
from tickoff.work import is_async, takes

from ..virtual import job as any_job


class Bench:
    """Runs on a store, and what they tell."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.referee = Referee(self.store)
        self.loop = EventLoop()
        self.told: list[Event] = []
        self.failed: list[tuple[str, int]] = []
        self.freed = threading.Event()
        events = Events()
        events.on(Kind.ENDED, self.told.append)
        self.runs = Runs(self.referee, self.loop, events, 4)
        self.runs.when_free = self.freed.set
        self.runs.when_failed = lambda job, _tick, attempt: self.failed.append((job.name, attempt))

    def job(self, work: Callable[..., object], **options: Any) -> Job:
        """A job that does this."""
        return any_job(work=work, asynchronous=is_async(work), wants_tick=takes(work, "tick"), **options)

    def start(self, work: Callable[..., object], **options: Any) -> Lease:
        """Win a tick and begin its run."""
        job = self.job(work, **options)
        tick = self.store.now() - 5
        lease = self.referee.take([self.referee.tick_bid("job", job.ttl, tick, attempts=job.attempts)], 1)[0]
        assert isinstance(lease, Lease)
        self.runs.start(job, lease, tick)
        return lease

    def ended(self) -> Event:
        """How it ended, once its slot is free."""
        assert self.freed.wait(10)
        assert self.runs.free == 4
        (event,) = self.told
        return event

    def recorded(self) -> tuple[Outcome, str]:
        """What the history says."""
        assert self.referee.settler.flush(10)
        run = self.store.history("job")[0]
        return run.outcome, run.error


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Four slots."""
    made = Bench()
    yield made
    made.runs.stop()
    made.loop.abandon()
    made.referee.close()


def test_a_sync_job_runs_in_a_thread_and_is_told_its_tick(bench: Bench) -> None:
    """And its lease is let go."""
    seen: list[object] = []

    def work(tick: Tick) -> None:
        tick.check()
        seen.extend([threading.current_thread().name, tick.attempt, tick.since, tick.manual])

    lease = bench.start(work)
    assert bench.ended().outcome is Outcome.OK
    assert seen[0] == "tickoff-job-1"
    assert seen[1:] == [1, None, False]
    assert bench.recorded() == (Outcome.OK, "")
    assert lease.over


def test_an_async_job_runs_on_the_loop(bench: Bench) -> None:
    """An object with an async `__call__` too."""
    seen: list[object] = []

    class Work:
        async def __call__(self, tick: Tick) -> None:
            await asyncio.sleep(0)
            seen.append(threading.current_thread().name)

    bench.start(Work())
    assert bench.ended().outcome is Outcome.OK
    assert seen == ["tickoff-asyncio"]


def fails(tick: Tick) -> None:
    """A job that fails."""
    raise ValueError("no\nluck")


async def fails_async() -> None:
    """A job that fails."""
    raise ValueError("no\nluck")


@pytest.mark.parametrize("work", [fails, fails_async])
def test_a_failure_is_recorded_in_one_line(bench: Bench, work: Callable[..., object]) -> None:
    """And told with its cause; it may be started again."""
    bench.start(work, attempts=2)
    event = bench.ended()
    assert isinstance(event.cause, ValueError)
    assert bench.recorded() == (Outcome.FAILED, "ValueError: no luck")
    assert bench.failed == [("job", 1)]


class Unsayable(Exception):
    """An error that fails at telling of itself."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def test_an_error_that_cannot_be_told_ends_its_run_all_the_same(bench: Bench) -> None:
    """Else it would hold its slot and its lease for as long as the server lives."""

    def work() -> None:
        raise Unsayable

    bench.start(work)
    assert bench.ended().outcome is Outcome.FAILED
    said = "Unsayable: (saying what it is raised ZeroDivisionError)"
    assert bench.recorded() == (Outcome.FAILED, said)


@pytest.mark.parametrize(
    ("status", "end"),
    [(0, (Outcome.OK, "")), (None, (Outcome.OK, "")), (3, (Outcome.FAILED, "exit status 3"))],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_leaving_by_sys_exit_ends_the_run_and_not_the_server(
    bench: Bench, status: object, end: tuple[Outcome, str], asynchronous: bool
) -> None:
    """As a script would, and with its meaning."""

    def leave() -> None:
        sys.exit(status)  # type: ignore[arg-type]

    async def leave_async() -> None:
        sys.exit(status)  # type: ignore[arg-type]

    bench.start(leave_async if asynchronous else leave)
    bench.ended()
    assert bench.recorded() == end
    assert bench.loop.submit(asyncio.sleep(0, "alive")).result(5) == "alive"


def test_a_sync_job_that_returns_a_coroutine_failed(bench: Bench) -> None:
    """It did nothing, and what it returned would run without the lease."""

    async def later() -> None:
        """Never runs."""

    bench.start(lambda: later())
    assert bench.ended().outcome is Outcome.FAILED
    assert "returned a coroutine" in bench.recorded()[1]


def test_an_async_job_that_is_too_slow_is_cancelled(bench: Bench) -> None:
    """At its deadline; its slot is free when it has cleaned up."""
    said: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            said.append("cleaned up")

    began = elapsed()
    bench.start(work, timeout=0.1)
    assert bench.ended().outcome is Outcome.TIMED_OUT
    assert said == ["cleaned up"]
    assert elapsed() - began < 10
    assert bench.recorded() == (Outcome.TIMED_OUT, "it ran longer than its timeout of 0.1 s")


def test_a_sync_job_that_is_too_slow_is_recorded_and_keeps_its_slot(bench: Bench) -> None:
    """At its deadline, not when it returns; its next check raises, and its lease is free."""
    go_on = threading.Event()
    said: list[str] = []

    def work(tick: Tick) -> None:
        go_on.wait(10)
        with pytest.raises(LeaseLost, match="timeout"):
            tick.check()
        said.append("told")

    lease = bench.start(work, timeout=0.1)
    deadline = time.monotonic() + 10
    while not bench.told:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert bench.recorded()[0] is Outcome.TIMED_OUT
    assert lease.lost
    assert not bench.store.read(["job"])[0].ok
    assert bench.runs.free == 3
    go_on.set()
    assert bench.ended().outcome is Outcome.TIMED_OUT
    assert said == ["told"]


def test_async_work_is_cancelled_when_its_lease_is_lost(bench: Bench) -> None:
    """And the history says so, whatever the work makes of it."""
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    lease = bench.start(work)
    assert begun.wait(5)
    lease.lose("the store gave it to another")
    event = bench.ended()
    assert (event.outcome, event.error) == (Outcome.LOST, "the store gave it to another")


def test_work_that_ends_well_under_a_lost_lease_is_lost(bench: Bench) -> None:
    """Somebody else may have done it meanwhile."""
    go_on = threading.Event()
    lease = bench.start(lambda: go_on.wait(10) and None)
    lease.lose("it could not be renewed in time")
    go_on.set()
    assert bench.ended().outcome is Outcome.LOST


def test_work_that_is_over_before_a_thread_was_free_is_not_called(bench: Bench) -> None:
    """The server stopped in between."""
    called: list[int] = []
    held: list[Callable[[], None]] = []
    bench.runs._crew.start = held.append  # type: ignore[method-assign]
    bench.start(lambda: called.append(1))
    bench.runs.stop()
    held[0]()
    assert called == []
    assert bench.ended().error == "the server stopped before it ended"


def test_async_work_is_not_called_either(bench: Bench) -> None:
    """Its slot is free all the same: a task that never began would tell nobody."""
    called: list[int] = []

    async def work() -> None:
        called.append(1)

    busy, go_on = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        go_on.wait(10)

    bench.loop.submit(block())
    assert busy.wait(5)
    lease = bench.start(work)
    lease.lose("the store gave it to another")
    go_on.set()
    assert bench.ended().outcome is Outcome.LOST
    assert called == []


def test_a_run_that_cannot_begin_has_failed(bench: Bench) -> None:
    """Else it would hold its slot and its lease for ever: here no thread can be started."""

    def start(_work: object) -> None:
        raise RuntimeError("can't start new thread")

    bench.runs._crew.start = start  # type: ignore[method-assign, assignment]
    bench.start(lambda: None)
    assert bench.ended().outcome is Outcome.FAILED
    assert "can't start new thread" in bench.recorded()[1]
