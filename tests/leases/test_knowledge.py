"""What a process remembers of names."""

from __future__ import annotations

import pytest

from tickoff.leases import knowledge
from tickoff.leases.knowledge import Knowledge
from tickoff.model import Entry, Known


def test_the_highest_of_everything_is_remembered() -> None:
    """Late answers do not take back what was learnt."""
    known = Knowledge()
    known.learn(Entry(name="a", fence=5, decided=20, finished=10, since=10, ttl=100))
    known.learn(Entry(name="a", fence=4, decided=30, finished=5, since=5))
    assert known.of("a") == Known(fence=5, decided=30, finished=10, since=10, ttl=100)
    assert known.of("b") == Known()


def test_the_later_word_on_a_pause_counts() -> None:
    """An answer that was on its way during a resume does not pause again."""
    known = Knowledge()
    known.learn(Entry(name="a", steered=2, paused=True, paused_by="ops", paused_why="down"))
    known.learn(Entry(name="a", steered=3))
    known.learn(Entry(name="a", steered=2, paused=True, paused_by="ops", paused_why="down"))
    assert not known.of("a").paused


def test_knowledge_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock per order does not fill the memory: the names used last stay."""
    monkeypatch.setattr(knowledge, "_NAMES_KEPT", 10)
    known = Knowledge()
    for i in range(100):
        known.learn(Entry(name=f"name-{i}", fence=i + 1))
    assert known.of("name-0") == Known()
    assert known.of("name-99").fence == 100


def test_knowledge_expires_before_the_store_drops_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a name dropped on schedule would look like a store that lost its data."""
    known = Knowledge()
    known.learn(Entry(name="a", fence=1))
    monkeypatch.setattr(knowledge, "_LIFE", 0.0)
    assert known.of("a") == Known()


def test_a_fence_that_a_database_has_seen_is_remembered() -> None:
    """It is told to the store with the next race, and nothing else of what is known changes."""
    known = Knowledge()
    known.learn(Entry(name="a", fence=5, decided=20, ttl=100))
    known.stale("a", 9)
    known.stale("a", 7)
    assert known.of("a") == Known(fence=9, decided=20, ttl=100)
