"""Ctrl-C at the worst moment: no lease stays behind that nobody renews and nobody frees."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tickoff import Tickoff


def interrupted(self: object, *arguments: Any) -> Any:
    """Stands for a call during which ctrl-C is pressed."""
    raise KeyboardInterrupt


def is_freed(jobs: Tickoff, name: str) -> bool:
    """Whether the name is free soon, long before the TTL."""
    deadline = time.monotonic() + 20
    while jobs.store.read([name])[0].ok and time.monotonic() < deadline:
        time.sleep(0.02)
    return not jobs.store.read([name])[0].ok


def test_an_interrupt_after_the_race_was_won_frees_the_name(
    jobs: Tickoff, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has granted the lease, but nobody has it in hand yet."""
    with monkeypatch.context() as patched:
        patched.setattr("tickoff.leases.keeper.Keeper.keep", interrupted)
        with pytest.raises(KeyboardInterrupt), jobs.lock(name, ttl="60s"):
            pytest.fail("the body ran")
    assert is_freed(jobs, name)


def test_an_interrupt_while_the_answer_is_read_frees_the_name(
    jobs: Tickoff, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request was sent; nobody knows what became of it."""
    race = jobs.store.race
    with monkeypatch.context() as patched:
        patched.setattr(jobs.store, "race", lambda bids: interrupted(race(bids)))
        with pytest.raises(KeyboardInterrupt), jobs.lock(name, ttl="60s"):
            pytest.fail("the body ran")
    assert is_freed(jobs, name)


def test_an_interrupt_of_the_release_frees_the_name(
    jobs: Tickoff, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is left, but its release never got as far as the store."""
    with monkeypatch.context() as patched:
        patched.setattr(jobs.store, "release", interrupted)
        with pytest.raises(KeyboardInterrupt), jobs.lock(name, ttl="60s"):
            pass
    assert is_freed(jobs, name)


def test_an_interrupt_of_the_body_frees_the_name(jobs: Tickoff, name: str) -> None:
    """It passes through as it is."""
    with pytest.raises(KeyboardInterrupt), jobs.lock(name, ttl="60s"):
        raise KeyboardInterrupt
    assert is_freed(jobs, name)
