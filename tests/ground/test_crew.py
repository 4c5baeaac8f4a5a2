"""Daemon threads for the users' functions: hired when needed, kept, and let go."""

from __future__ import annotations

import threading
import time

import pytest

from tickoff.ground.crew import Crew


def crew_threads(name: str) -> list[threading.Thread]:
    """The threads of a crew."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"tickoff-{name}-")]


def all_over(name: str, limit: float = 5.0) -> bool:
    """Whether the threads of a crew end in time."""
    deadline = time.monotonic() + limit
    while crew_threads(name) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not crew_threads(name)


def test_work_that_is_started_at_once_runs_at_once() -> None:
    """Nobody waits for another's end: each would deadlock here."""
    crew, together = Crew("together"), threading.Barrier(6)
    for _ in range(5):
        crew.start(lambda: together.wait(5) and None)
    together.wait(5)
    crew.dismiss()
    assert all_over("together")


def test_a_free_thread_is_used_again() -> None:
    """As many are hired as were at work together."""
    crew = Crew("again")
    for _ in range(20):
        done = threading.Event()
        crew.start(done.set)
        assert done.wait(5)
        time.sleep(0.005)
    assert len(crew_threads("again")) < 5
    crew.dismiss()


def test_a_bug_in_the_work_leaves_the_thread_for_others(caplog: pytest.LogCaptureFixture) -> None:
    """And is reported."""
    crew, done = Crew("bug"), threading.Event()
    crew.start(lambda: 1 / 0 and None)
    crew.start(done.set)
    assert done.wait(5)
    crew.dismiss()
    assert all_over("bug")
    assert "ZeroDivisionError" in caplog.text


def test_who_never_returns_keeps_a_thread_and_not_the_process() -> None:
    """The thread is a daemon; the crew may be dismissed and used again."""
    crew, release, done = Crew("stuck"), threading.Event(), threading.Event()
    crew.start(lambda: release.wait(30) and None)
    crew.dismiss()
    (stuck,) = crew_threads("stuck")
    assert stuck.daemon
    crew.start(done.set)
    assert done.wait(5)
    release.set()
    crew.dismiss()
    assert all_over("stuck")
