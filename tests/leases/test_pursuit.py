"""A coroutine gives its race up while a thread waits for the answer: what the answer changes about it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from tickoff import StoreUnreachable
from tickoff.ground.clocks import elapsed
from tickoff.leases.referee import Referee
from tickoff.model import Answer, Bid
from tickoff.stores.memory import MemoryStore


class SlowStore(MemoryStore):
    """Races wait at a gate, before or after they are decided; it can lose the first answer, or a release."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.gate = threading.Semaphore(0), threading.Event()
        self.loses_answer = self.loses_release = False

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        self.reached.release()
        assert self.gate.wait(10)
        if self.loses_answer:
            self.loses_answer = False
            raise StoreUnreachable("no answer")
        return super().race(bids)

    def release(self, name: str, token: str) -> bool:
        if self.loses_release:
            raise StoreUnreachable("no answer")
        return super().release(name, token)


@pytest.fixture
def store() -> SlowStore:
    """A store that takes its time."""
    return SlowStore()


@pytest.fixture
def referee(store: SlowStore) -> Iterator[Referee]:
    """A referee whose keeper withdraws nothing by itself."""
    made = Referee(store)
    made.keeper._loop.wake_by = lambda due: None  # type: ignore[method-assign]
    yield made
    made.close()


def give_up(referee: Referee, store: SlowStore, races: int = 1) -> None:
    """Cancel races while they are under way; their answers come afterwards."""

    async def main() -> None:
        tasks = [asyncio.create_task(referee.race_aside(referee.bid("a", 60_000))) for _ in range(races)]
        await asyncio.to_thread(store.reached.acquire)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)

    asyncio.run(main())
    assert referee.keeper.withdrawals > 0
    store.gate.set()


def eventually(true: Callable[[], object]) -> bool:
    """Whether it comes true soon."""
    deadline = time.monotonic() + 5
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(true())


def still_to_be_withdrawn(referee: Referee, store: SlowStore) -> bool:
    """Whether the race is so, some time after it was won."""
    assert eventually(lambda: store.read(["a"])[0].entry.fence)
    time.sleep(0.2)
    return referee.keeper.withdrawals == 1


def holder(store: SlowStore) -> str:
    """Who holds the name."""
    return store.read(["a"])[0].entry.token


def test_a_win_that_nobody_waits_for_is_let_go_of_at_once(referee: Referee, store: SlowStore) -> None:
    """By the thread that has the answer, not behind a queue of withdrawals; and no tombstone is left."""
    give_up(referee, store)
    assert eventually(lambda: referee.keeper.withdrawals == 0)
    assert store.read(["a"])[0].entry.fence > 0
    assert holder(store) == ""
    assert store.read(["a"])[0].entry.withdrawn == ()


def test_a_loss_that_nobody_waits_for_leaves_nothing_to_be_done(referee: Referee, store: SlowStore) -> None:
    """However many give up: the holder's row is not written for each of them."""
    store.gate.set()
    lease = referee.race(referee.bid("a", 60_000))
    assert lease
    store.gate.clear()
    store.reached.acquire()
    version = store.read(["a"])[0].entry.version
    give_up(referee, store, races=50)
    assert eventually(lambda: referee.keeper.withdrawals == 0)
    assert store.read(["a"])[0].entry.version == version


def test_a_race_that_was_sent_twice_is_withdrawn_all_the_same(referee: Referee, store: SlowStore) -> None:
    """The first request may still be on its way, and win when nobody expects it."""
    store.loses_answer = True
    give_up(referee, store)
    assert still_to_be_withdrawn(referee, store)
    referee.keeper.step(elapsed())
    assert holder(store) == ""
    assert len(store.read(["a"])[0].entry.withdrawn) == 1


def test_a_win_whose_release_gets_no_answer_is_withdrawn(referee: Referee, store: SlowStore) -> None:
    """By the keeper, until it gets through."""
    store.loses_release = True
    give_up(referee, store)
    assert still_to_be_withdrawn(referee, store)
