"""After a fork the child holds nothing, and shares no connection with its parent."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tickoff import Lease, LeaseLost, Tickoff
from tickoff.leases.referee import Referee
from tickoff.model import Outcome
from tickoff.work import End


def in_child(work: Callable[[], None]) -> int:
    """Run the work in a forked child; its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads: the very case
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the child must not return into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def shared(shared_url: str) -> Tickoff:
    """A Tickoff that was in use before the fork."""
    return Tickoff(shared_url)


def test_a_child_neither_has_nor_frees_its_parents_lease(shared: Tickoff, name: str) -> None:
    """In the child the lease is lost and its release does nothing; the parent goes on as if alone."""
    with shared.lock(name, ttl="0.9s") as lease:

        def child() -> None:
            assert lease.lost
            assert lease.release() is False
            with pytest.raises(LeaseLost, match="parent"):
                lease.check()

        assert in_child(child) == 0
        lease.check()
        assert shared.store.read([name])[0].entry.token == lease.token


def test_a_child_that_leaves_the_block_does_not_free_its_parents_lease(shared: Tickoff, name: str) -> None:
    """A child of a fork inside the block runs out of it, too: it is told so, and the parent goes on."""
    lock = shared.lock(name, ttl="30s")
    lease = lock.__enter__()

    def child() -> None:
        with pytest.raises(LeaseLost, match="parent"):
            lock.__exit__(None, None, None)
        time.sleep(1)  # whatever the child would do behind our back, it has had the time to

    assert in_child(child) == 0
    lease.check()
    assert shared.store.read([name])[0].entry.token == lease.token
    lock.__exit__(None, None, None)
    assert not shared.store.read([name])[0].ok


def test_a_child_does_not_settle_its_parents_tick(shared: Tickoff, name: str) -> None:
    """Work that forks and returns twice ends once."""
    referee = Referee(shared.store)
    lease = referee.race(referee.tick_bid(name, 30_000, shared.store.now() - 1000))
    assert isinstance(lease, Lease)

    def child() -> None:
        assert not referee.settle(lease, Outcome.FAILED)
        referee.finish(lease, End(Outcome.FAILED), 1)
        time.sleep(1)

    assert in_child(child) == 0
    assert referee.settle(lease, Outcome.OK)
    assert [run.outcome for run in shared.store.history(name)] == [Outcome.OK]


def test_a_child_works_on_connections_of_its_own(shared: Tickoff, name: str) -> None:
    """Parent and child use the store at the same time, each with its own identity and sockets."""
    with shared.lock(name) as lease:

        def child() -> None:
            for i in range(20):
                verdict = shared.race(name)
                assert not verdict
                with shared.lock(f"{name}-{i}") as own:
                    assert own.owner != lease.owner

        pid_status = in_child(child)
        for i in range(20):
            with shared.lock(f"{name}-parent-{i}"):
                lease.check()
        assert pid_status == 0
    shared.close()


def test_a_child_renews_what_it_wins(shared: Tickoff, name: str) -> None:
    """The keeper's threads start anew in the child."""
    with shared.lock(f"{name}-parent", ttl="1.5s"):

        def child() -> None:
            lease = shared.race(name, ttl="1.5s")
            assert isinstance(lease, Lease)
            time.sleep(2)
            lease.check()
            assert lease.release()

        assert in_child(child) == 0
    shared.close()


def test_a_fork_amid_the_use_of_sql_leaves_the_child_no_lock_that_nobody_lets_go_of(tmp_path: Path) -> None:
    """SQLite and SQLAlchemy have locks for the whole process; any thread of the parent may hold one."""
    shared = Tickoff(f"sqlite:///{tmp_path}/tickoff.db")
    ended = threading.Event()

    def rush(place: int) -> None:
        while not ended.is_set():
            other = Tickoff(f"sqlite:///{tmp_path}/{place}/tickoff.db")  # opening and closing take them most
            other.race("rush")
            other.close()

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)  # ends a child that hangs
        assert shared.race("child").release()

    rushing = [threading.Thread(target=rush, args=[place]) for place in range(4)]
    for place, thread in enumerate(rushing):
        (tmp_path / str(place)).mkdir()
        thread.start()
    try:
        assert [in_child(child) for _ in range(30)] == [0] * 30
    finally:
        ended.set()
        for thread in rushing:
            thread.join()
        shared.close()
