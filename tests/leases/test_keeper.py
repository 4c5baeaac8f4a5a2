"""The keeper and the judge, step by step in time that is an argument."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from tickoff import Lease, StoreUnreachable, Tickoff
from tickoff.ground.clocks import elapsed
from tickoff.ground.loops import Loop
from tickoff.leases.keeper import Judge, Keeper
from tickoff.leases.knowledge import Knowledge
from tickoff.leases.referee import Referee
from tickoff.model import Answer, Hold
from tickoff.stores.memory import MemoryStore


class CountingStore(MemoryStore):
    """A store that counts renewals, and can be out of reach."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.down = False
        self.closed_meanwhile = False
        self.limits: list[float] = []

    def within(self, limit: float) -> CountingStore:
        self.limits.append(limit)
        return self

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        if self.down:
            raise StoreUnreachable("down")
        if self.closed_meanwhile:
            self.closed_meanwhile = False
            raise StoreUnreachable("a connection that idled was closed")
        self.batches.append([hold.name for hold in holds])
        return super().renew(holds)


@pytest.fixture
def store() -> CountingStore:
    """A store to count on."""
    return CountingStore()


@pytest.fixture
def referee(store: CountingStore) -> Referee:
    """A referee whose loops are stopped: the tests call the steps."""
    made = Referee(store)
    made.keeper._loop.wake_by = lambda due: None  # type: ignore[method-assign]
    return made


def won(referee: Referee, name: str, ttl: int = 60_000) -> Lease:
    """A lease, kept."""
    lease = referee.race(referee.bid(name, ttl))
    assert isinstance(lease, Lease)
    return lease


def test_leases_are_renewed_at_a_third_of_their_ttl(referee: Referee, store: CountingStore) -> None:
    """Not before; then the next step is due a third later."""
    lease = won(referee, "a")
    now = elapsed()
    due = referee.keeper.step(now)
    assert store.batches == []
    assert due == lease.renew_at
    assert due == pytest.approx(now + 20, abs=1)
    due = referee.keeper.step(now + 20.5)
    assert store.batches == [["a"]]
    assert due == pytest.approx(now + 40.5, abs=1)


def test_all_leases_of_a_store_are_renewed_in_one_batch(referee: Referee, store: CountingStore) -> None:
    """Whatever is due now or soon travels together."""
    leases = [won(referee, f"name-{i}") for i in range(100)]
    referee.keeper.step(elapsed() + 21)
    assert [len(batch) for batch in store.batches] == [100]
    assert all(not lease.lost for lease in leases)


def test_released_and_dropped_leases_are_not_renewed(referee: Referee, store: CountingStore) -> None:
    """Renewal stops as soon as the work ends or nobody refers to the lease."""
    kept, released, dropped = (won(referee, name) for name in ("kept", "released", "dropped"))
    released.release()
    del dropped
    referee.keeper.step(elapsed() + 21)
    assert store.batches == [["kept"]]
    assert not kept.lost


def test_an_outage_is_retried_soon_and_a_recovery_keeps_the_lease(
    referee: Referee, store: CountingStore
) -> None:
    """Between a third and two thirds of the TTL there are many tries."""
    lease = won(referee, "a", 2400)
    store.down = True
    now = elapsed() + 0.9
    due = referee.keeper.step(now)
    assert due is not None
    assert due - elapsed() < 2.4 / 10
    store.down = False
    lease.renew_at = now
    referee.keeper.step(now)
    assert store.batches == [["a"]]
    assert not lease.lost


def test_the_limit_of_io_follows_the_shortest_ttl(referee: Referee, store: CountingStore) -> None:
    """Below a sixth of it, so that a hanging store leaves time for another try."""
    leases = [won(referee, "long"), won(referee, "short", 1200)]
    referee.keeper.step(elapsed() + 21)
    assert store.limits
    assert store.limits[-1] <= 1.2 / 6
    assert leases


def test_no_lease_waits_longer_for_io_than_its_own_ttl_allows(referee: Referee, store: CountingStore) -> None:
    """What is due is a long one; should it hang, the other must not be lost. Only then has it longer."""
    long, short = won(referee, "long"), won(referee, "short", 1200)
    long.renew_at = 0
    store.closed_meanwhile = True
    referee.keeper.step(elapsed())
    assert store.batches == [["long"]]
    assert store.limits[-2] <= short.ttl / 6
    assert short.ttl < store.limits[-1] <= long.ttl / 6


def test_a_withdrawal_does_not_hang_longer_than_the_shortest_ttl_allows(
    referee: Referee, store: CountingStore
) -> None:
    """Renewals wait for it."""
    long = won(referee, "long")
    referee.keeper.step(elapsed() + 21)
    short = won(referee, "short", 1200)
    referee.keeper.withdraw("other", "token")
    referee.keeper.step(elapsed())
    assert store.limits[-1] <= short.ttl / 6
    assert not long.lost


def test_a_connection_closed_while_it_idled_is_no_outage(
    referee: Referee, store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis with a `timeout`, or a firewall, closes what is used once in twenty seconds."""
    lease = won(referee, "a")
    store.closed_meanwhile = True
    referee.keeper.step(elapsed() + 21)
    assert store.batches == [["a"]]
    store.closed_meanwhile = True
    lease.extend()
    assert caplog.records == []


def test_who_asks_to_be_told_too_late_is_told_at_once(referee: Referee) -> None:
    """An async function begun just then would never be cancelled."""
    lease, told = won(referee, "a"), list[str]()
    lease.on_loss(lambda: told.append("before"))
    lease.lose("for a test")
    lease.on_loss(lambda: told.append("after"))
    assert told == ["before", "after"]


def test_the_judge_tells_at_two_thirds_of_the_ttl(referee: Referee) -> None:
    """Once, and only if nothing was renewed meanwhile."""
    judge, told = Judge(), list[str]()
    judge._loop.wake_by = lambda due: None  # type: ignore[method-assign]
    lease = won(referee, "a", 3000)
    lease.on_loss(lambda: told.append("lost"))
    judge.watch(lease)
    now = elapsed()
    assert judge.step(now + 1.8) == lease.tell_at
    assert told == []
    judge.step(now + 2.1)
    judge.step(now + 2.2)
    assert told == ["lost"]
    assert lease.lost


def test_a_lease_notices_its_deadline_without_any_thread(referee: Referee) -> None:
    """Who was stopped learns at the first check after resuming."""
    lease = won(referee, "a", 300)
    time.sleep(0.25)
    assert lease.lost


def test_withdrawals_are_tried_until_they_get_through(store: CountingStore) -> None:
    """A store that is down when a race is given up hears of it later."""
    keeper = Keeper(store, Knowledge())
    keeper._loop.wake_by = lambda due: None  # type: ignore[method-assign]
    calls: list[str] = []

    def withdraw(name: str, token: str) -> bool:
        calls.append(name)
        if len(calls) < 3:
            raise StoreUnreachable("down")
        return True

    store.withdraw = withdraw  # type: ignore[method-assign]
    keeper.withdraw("a", "token")
    now = elapsed()
    for i in range(5):
        keeper.step(now + i)
    assert calls == ["a", "a", "a"]
    assert keeper.withdrawals == 0


def test_a_loop_survives_an_error_in_its_step() -> None:
    """A bug in one step does not end the thread that keeps the leases."""
    steps: list[float] = []

    def step(now: float) -> float | None:
        steps.append(now)
        if len(steps) == 1:
            raise ZeroDivisionError
        return None

    loop = Loop("test-loop", step)
    loop.wake_by(elapsed())
    deadline = time.monotonic() + 5
    while len(steps) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    loop.stop()


def test_a_loop_wakes_early_when_something_is_due_earlier() -> None:
    """A sleeping loop takes an earlier appointment."""
    steps: list[float] = []
    loop = Loop("test-loop", lambda now: steps.append(now))
    began = elapsed()
    loop.wake_by(began + 30)
    loop.wake_by(began + 0.1)
    deadline = time.monotonic() + 5
    while not steps:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert 0.1 <= steps[0] - began < 2
    loop.stop()


def test_a_loop_of_locks_wakes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is due later than what the threads wait for is nothing to wake them for."""
    jobs = Tickoff("memory://")
    with jobs.lock("first", ttl="60s"):
        pass
    woken: list[int] = []
    notify = threading.Condition.notify
    monkeypatch.setattr(
        threading.Condition, "notify", lambda self, n=1: (woken.append(n), notify(self, n))[1]
    )
    for _ in range(200):
        with jobs.lock("name", ttl="60s"):
            pass
    assert len(woken) < 10  # the judge may have something to do for others
    jobs.close()


def test_many_withdrawals_from_a_dead_store_do_not_hold_up_renewals(store: CountingStore) -> None:
    """One that does not get through is enough to know; the others wait for the next try, in small parts."""
    keeper = Keeper(store, Knowledge(), Judge())
    keeper._loop.wake_by = lambda due: None  # type: ignore[method-assign]
    asked: list[str] = []
    dead = True

    def withdraw(name: str, token: str) -> bool:
        asked.append(token)
        if dead:
            raise StoreUnreachable("down")
        return True

    store.withdraw = withdraw  # type: ignore[method-assign]
    for i in range(100):
        keeper.withdraw("a", f"token-{i}")
    keeper.step(elapsed())
    assert asked == ["token-0"]
    dead = False
    keeper.step(elapsed() + 1)
    assert 1 < len(asked) < 50
    for _ in range(10):
        keeper.step(elapsed() + 1)
    assert keeper.withdrawals == 0
