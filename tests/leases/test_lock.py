"""Locks as users write them, on every store."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tickoff import Lease, LeaseLost, LockHeld, Ran, Skipped, Tickoff, TickoffError
from tickoff.errors import ConfigError


def test_the_body_runs_with_the_lease_and_frees_it(jobs: Tickoff, name: str) -> None:
    """Inside the block the name is ours, after it the name is free."""
    with jobs.lock(name, ttl="30s") as lease:
        lease.check()
        assert not lease.lost
        assert lease.name == name
        assert not jobs.race(name)
    assert jobs.race(name)


def test_the_body_never_runs_without_the_lease(jobs: Tickoff, name: str) -> None:
    """A lost race raises LockHeld, which says by whom and until when."""
    with jobs.lock(name) as lease, pytest.raises(LockHeld) as lost, jobs.lock(name):
        pytest.fail("the body ran")
    assert lost.value.skipped.by == lease.owner
    assert lost.value.skipped.until is not None
    assert lease.owner in str(lost.value)


def test_the_lock_is_freed_when_the_body_raises(jobs: Tickoff, name: str) -> None:
    """An error passes through as it is, and the name is free."""
    with pytest.raises(ZeroDivisionError), jobs.lock(name):
        _ = 1 / 0
    assert jobs.race(name)


def test_waiting_gets_the_lock_once_it_is_free(jobs: Tickoff, name: str) -> None:
    """A queue of one wins soon after the release."""
    lease = jobs.race(name)
    assert isinstance(lease, Lease)
    timer = threading.Timer(0.3, lease.release)
    began = time.monotonic()
    timer.start()
    with jobs.lock(name, wait="10s"):
        waited = time.monotonic() - began
    timer.join()
    assert 0.25 < waited < 3


def test_waiting_ends(jobs: Tickoff, name: str) -> None:
    """Who waits in vain is told after the wait."""
    with jobs.lock(name):
        began = time.monotonic()
        with pytest.raises(LockHeld), jobs.lock(name, wait="0.4s"):
            pytest.fail("the body ran")
        assert 0.4 <= time.monotonic() - began < 3


def test_a_lost_lock_raises_when_left(jobs: Tickoff, name: str) -> None:
    """Nobody leaves a lost lock believing that all was well."""
    with pytest.raises(LeaseLost, match="no longer had it"), jobs.lock(name):
        jobs.store.evict(name, "ops", "test")


def test_a_lost_lock_does_not_hide_the_error_of_the_body(jobs: Tickoff, name: str) -> None:
    """When the body already raised, its error is the one that counts."""

    def fail_after_losing() -> None:
        with jobs.lock(name):
            jobs.store.evict(name, "ops", "test")
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fail_after_losing()


def test_an_evicted_holder_is_told_by_its_next_renewal(jobs: Tickoff, name: str) -> None:
    """The keeper finds out within a third of the TTL; check and extend raise."""
    lease = jobs.race(name, ttl="0.6s")
    assert isinstance(lease, Lease)
    told = threading.Event()
    lease.on_loss(told.set)
    jobs.store.evict(name, "ops", "test")
    assert told.wait(1.0)
    for ask in (lease.check, lease.extend):
        with pytest.raises(LeaseLost):
            ask()
    assert lease.release() is False


def test_a_lease_nobody_refers_to_is_not_renewed(jobs: Tickoff, name: str) -> None:
    """A dropped lease is no immortal lock: it ends by its TTL."""
    assert jobs.race(name, ttl="0.5s")
    deadline = time.monotonic() + 3
    while not jobs.race(name, ttl="60s"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_extend_gives_more_time(jobs: Tickoff, name: str) -> None:
    """A longer TTL counts from now, in the store and for the deadline."""
    lease = jobs.race(name, ttl="5s")
    assert isinstance(lease, Lease)
    before = lease.until
    assert (lease.extend("60s") - before).total_seconds() > 50
    assert lease.ttl == 60
    kept = jobs.store.read([name])[0]
    assert kept.entry.until - kept.now > 55_000


def test_release_can_be_repeated(jobs: Tickoff, name: str) -> None:
    """The second release changes nothing; a check after it says so."""
    lease = jobs.race(name)
    assert isinstance(lease, Lease)
    assert lease.release()
    other = jobs.race(name)
    assert lease.release()
    assert isinstance(other, Lease)
    assert jobs.store.read([name])[0].entry.token == other.token
    with pytest.raises(LeaseLost, match="released"):
        lease.check()


def test_run_with_lock_returns_the_value(jobs: Tickoff, name: str) -> None:
    """The plain recipe: a value or a falsy reason; None is a value, too."""
    assert jobs.run_with_lock(name, lambda: 42) == Ran(42)
    nothing = jobs.run_with_lock(name, lambda: None)
    assert nothing
    assert nothing == Ran(None)
    with jobs.lock(name):
        skipped = jobs.run_with_lock(name, lambda: 42)
    assert isinstance(skipped, Skipped)
    assert not skipped
    assert skipped.why == "held"


def test_run_with_lock_fills_in_the_lease(jobs: Tickoff, name: str) -> None:
    """A parameter named lease is how a long function asks whether it may go on."""

    def job(lease: Lease) -> str:
        lease.check()
        return lease.name

    assert jobs.run_with_lock(name, job) == Ran(name)


def test_a_lock_object_is_not_entered_twice(jobs: Tickoff, name: str) -> None:
    """One object stands for one lock: it can be used again, not at once."""
    lock = jobs.lock(name)
    with lock, pytest.raises(TickoffError, match="entered already"), lock:
        pytest.fail("the body ran")
    with lock as lease:
        lease.check()


def test_a_lease_is_a_context_manager_itself(jobs: Tickoff, name: str) -> None:
    """What race returns can be left like a lock."""
    lease = jobs.race(name)
    assert isinstance(lease, Lease)
    with lease:
        pass
    assert jobs.race(name)


def test_namespaces_do_not_meet(url: str, name: str) -> None:
    """The same name in two namespaces is two names."""
    one, two = Tickoff(url, namespace="one"), Tickoff(url, namespace="two")
    with one.lock(name) as lease, two.lock(name):
        assert lease.name == f"one:{name}"
    for jobs in (one, two):
        jobs.close()


def test_a_closed_tickoff_works_again(jobs: Tickoff, name: str) -> None:
    """Closing ends threads and connections; the next use opens new ones."""
    with jobs.lock(name):
        pass
    jobs.close()
    with jobs.lock(name):
        pass


def test_many_threads_share_one_tickoff(jobs: Tickoff, name: str) -> None:
    """One object serves all threads of a process."""
    fences: list[int] = []

    def work(i: int) -> None:
        for k in range(5):
            with jobs.lock(f"{name}-{i}-{k}") as lease:
                fences.append(lease.fence)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fences) == 60


def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("job", [_generator, _async_generator, 5, "job"])
def test_what_would_run_after_its_lease_is_refused_before_the_race(job: Any) -> None:
    """A generator's body runs when somebody iterates, long after the lock is free; other things never run."""
    jobs = Tickoff("memory://")
    with pytest.raises(ConfigError, match="pass"):
        jobs.run_with_lock("refused", job)
    assert jobs.store.names() == []
