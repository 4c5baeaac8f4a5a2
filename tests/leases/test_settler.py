"""Ticks that ended are settled in batches, again after an outage, and never under somebody else's token."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tickoff import StoreUnreachable
from tickoff.ground.clocks import elapsed
from tickoff.ground.loops import Loop
from tickoff.leases.lease import Lease
from tickoff.leases.referee import Referee
from tickoff.model import Answer, Ending, Outcome
from tickoff.stores.memory import MemoryStore
from tickoff.work import ENDED_WELL, End


class Store(MemoryStore):
    """Counts, and can be down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.batches: list[int] = []

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        if self.down:
            raise StoreUnreachable("down")
        self.batches.append(len(endings))
        return super().settle(endings)


@pytest.fixture
def store() -> Store:
    """A store to count on."""
    return Store()


@pytest.fixture
def referee(store: Store, monkeypatch: pytest.MonkeyPatch) -> Referee:
    """A referee whose loops are stepped by the test."""
    monkeypatch.setattr(Loop, "wake_by", lambda _loop, _due: None)
    return Referee(store)


def won(referee: Referee, name: str, attempts: int = 1) -> Lease:
    """A tick of a moment ago."""
    lease = referee.take([referee.tick_bid(name, 60_000, referee.store.now() - 5, attempts=attempts)], 1)[0]
    assert isinstance(lease, Lease)
    return lease


def test_all_that_ended_is_settled_in_one_trip(referee: Referee, store: Store) -> None:
    """And there is nothing left to do."""
    for i in range(50):
        referee.finish(won(referee, f"job-{i}"), ENDED_WELL, 1)
    assert referee.settler.step(elapsed()) is None
    assert store.batches == [50]
    assert referee.settler.flush(0)
    assert referee.settler.step(elapsed()) is None
    assert store.batches == [50]


def test_a_settlement_is_tried_until_the_store_answers(referee: Referee, store: Store) -> None:
    """Once a second; what ended meanwhile goes along."""
    first = won(referee, "a")
    referee.finish(first, End(Outcome.FAILED, "no luck"), 1)
    store.down = True
    now = elapsed()
    assert referee.settler.step(now) == now + 1
    assert not referee.settler.flush(0)
    referee.finish(won(referee, "b"), ENDED_WELL, 1)
    store.down = False
    assert referee.settler.step(now + 1) is None
    assert store.batches == [2]
    assert store.history("a")[0].error == "no luck"
    assert store.history("b")[0].outcome is Outcome.OK


def test_it_gives_up_after_ten_minutes_and_says_so(
    referee: Referee, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that never comes back does not pile up what is to be told to it."""
    referee.finish(won(referee, "a"), ENDED_WELL, 1)
    store.down = True
    referee.settler.step(elapsed() + 599)
    assert not referee.settler.flush(0)
    referee.settler.step(elapsed() + 601)
    assert referee.settler.flush(0)
    assert "a ended ok, but the store could not be told" in caplog.text


def test_somebody_elses_tick_is_not_settled(referee: Referee, store: Store) -> None:
    """The lease was taken away: the run is recorded as lost, and the new holder keeps his."""
    lease = won(referee, "a")
    store.evict("a", "ann", "stuck")
    taker = referee.race(referee.bid("a", 60_000))
    assert isinstance(taker, Lease)
    referee.finish(lease, ENDED_WELL, 1)
    referee.settler.step(elapsed())
    assert lease.lost
    assert store.read(["a"])[0].entry.token == taker.token
    assert [run.outcome for run in store.history("a")] == [Outcome.LOST]


def test_a_child_settles_nothing_of_its_parents(referee: Referee, store: Store) -> None:
    """It holds nothing."""
    referee.finish(won(referee, "a"), ENDED_WELL, 1)
    referee.settler.after_fork()
    assert referee.settler.flush(0)
    referee.settler.step(elapsed())
    assert store.batches == []


def test_flush_waits_for_the_last_one(store: Store) -> None:
    """With the real thread."""
    referee = Referee(store)
    gate = threading.Event()
    settle = store.settle

    def slow(endings: Sequence[Ending]) -> list[Answer]:
        gate.wait(10)
        return settle(endings)

    store.settle = slow  # type: ignore[method-assign]
    referee.finish(won(referee, "a"), ENDED_WELL, 1)
    assert not referee.settler.flush(0.05)
    gate.set()
    assert referee.settler.flush(10)
    referee.close()
