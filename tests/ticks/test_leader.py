"""One leads, and another takes over when it cannot; in real time, with short leases."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tickoff import Lease
from tickoff.ground.eventloop import EventLoop
from tickoff.leases.referee import Referee
from tickoff.stores.memory import MemoryStore
from tickoff.ticks import leader
from tickoff.ticks.job import Post
from tickoff.ticks.leader import Leader
from tickoff.work import is_async, takes


class Candidate:
    """A server that would lead."""

    def __init__(self, store: MemoryStore, work: Callable[..., object], ttl: int = 600) -> None:
        self.referee = Referee(store)
        self.loop = EventLoop()
        post = Post(
            name="watch", work=work, ttl=ttl, asynchronous=is_async(work), wants_lease=takes(work, "lease")
        )
        self.leader = Leader(self.referee, post, self.loop)

    def dies(self) -> None:
        """Renew no more."""
        assert self.leader._lease is not None
        self.referee.keeper.drop(self.leader._lease)
        self.leader._loop.stop()


@pytest.fixture
def store() -> MemoryStore:
    """What all candidates share."""
    return MemoryStore()


@pytest.fixture
def candidate(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Candidate]]:
    """Makes candidates, and ends them."""
    monkeypatch.setattr(leader, "_PAUSE", 0.05)
    made: list[Candidate] = []

    def make(work: Callable[..., object], ttl: int = 600) -> Candidate:
        made.append(Candidate(store, work, ttl))
        return made[-1]

    yield make
    for one in made:
        one.leader.quiet()
        one.leader.stop()
        one.loop.abandon()
        one.referee.close()


def eventually(condition: Callable[[], object], limit: float = 10.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False


def leads(log: list[str], name: str) -> Callable[..., object]:
    """Async work that writes down when it begins and when it is stopped."""

    async def work() -> None:
        log.append(f"{name} leads")
        try:
            await asyncio.sleep(60)
        finally:
            log.append(f"{name} stopped")

    return work


def test_one_leads_and_the_other_takes_over_when_it_steps_down(
    candidate: Callable[..., Candidate],
) -> None:
    """Without waiting for the TTL; never both."""
    log: list[str] = []
    first, second = candidate(leads(log, "first"), 30_000), candidate(leads(log, "second"), 900)
    first.leader.start()
    assert eventually(lambda: log == ["first leads"])
    second.leader.start()
    time.sleep(0.3)
    assert log == ["first leads"]
    first.leader.quiet()
    assert eventually(lambda: not first.leader.busy())
    assert eventually(lambda: "second leads" in log)
    assert log == ["first leads", "first stopped", "second leads"]


def test_async_work_is_stopped_before_another_takes_over(
    candidate: Callable[..., Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lead could not be renewed: the work is cancelled at two thirds of the TTL."""
    monkeypatch.setattr(leader, "_PAUSE", 60.0)  # or the first might be quick enough to lead again
    log: list[str] = []
    first, second = candidate(leads(log, "first")), candidate(leads(log, "second"))
    first.leader.start()
    assert eventually(lambda: log)
    second.leader.start()
    lease = first.leader._lease
    assert lease is not None
    first.referee.keeper._watched.discard(lease)  # the judge still watches it
    assert eventually(lambda: "second leads" in log)
    assert log[:2] == ["first leads", "first stopped"]


def test_sync_work_sees_that_its_lead_is_lost(candidate: Callable[..., Candidate]) -> None:
    """By its lease."""
    seen: list[str] = []

    def work(lease: Lease) -> None:
        seen.append("leads")
        assert eventually(lambda: lease.lost)
        seen.append("told")

    one = candidate(work)
    one.leader.start()
    assert eventually(lambda: seen)
    one.leader.quiet()
    assert eventually(lambda: not one.leader.busy())
    assert seen == ["leads", "told"]


def test_work_that_returns_or_fails_leads_again_after_a_pause(
    candidate: Callable[..., Candidate], caplog: pytest.LogCaptureFixture
) -> None:
    """A failure is logged with its traceback, once each time."""
    turns: list[int] = []

    def work() -> None:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError("no luck")

    candidate(work).leader.start()
    assert eventually(lambda: len(turns) >= 3)
    assert caplog.text.count("ValueError: no luck\n") >= 1
    assert caplog.text.count("Traceback") == 1


def test_a_lead_that_is_won_while_the_server_stops_is_given_back(
    candidate: Callable[..., Candidate], store: MemoryStore
) -> None:
    """The answer to its race was on its way."""
    called: list[int] = []
    one = candidate(lambda: called.append(1))
    race = store.race

    def slow(bids: list[object]) -> object:
        answers = race(bids)  # type: ignore[arg-type]
        one.leader.quiet()
        return answers

    store.race = slow  # type: ignore[method-assign, assignment]
    assert one.leader.step(0.0) is None
    assert called == []
    assert not one.leader.busy()
    assert not store.read(["watch"])[0].ok


def test_a_lead_that_is_lost_before_the_work_began_ends(candidate: Callable[..., Candidate]) -> None:
    """The loop was busy: the work never runs, and the server may lead again."""
    log: list[str] = []
    busy, go_on = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        go_on.wait(10)

    one = candidate(leads(log, "one"), 30_000)
    one.loop.submit(block())
    assert busy.wait(5)
    one.leader.step(0.0)
    assert one.leader._lease is not None
    one.leader.quiet()
    go_on.set()
    assert eventually(lambda: not one.leader.busy())
    assert log == []
