"""Rules that bound what is kept of a name, step by step in time that is an argument."""

from __future__ import annotations

from tickoff import rules
from tickoff.model import TOMBSTONE_LIFE, Bid, Entry
from tickoff.stores.sql.store import row_of

TEXT_OF_MYSQL = 65_535
"""Bytes that a column of type TEXT takes."""


def withdrawn(races: int, now: int = 1_000_000) -> Entry:
    """What is kept of a name after so many of its races were withdrawn."""
    entry = Entry(name="a")
    for i in range(races):
        entry = rules.withdraw(entry, f"{i:032x}", now + i).entry
    return entry


def race(entry: Entry, token: str, now: int) -> rules.Step:
    """A race for the name."""
    return rules.race(entry, Bid(name=entry.name, token=token, owner="h:1:x", ttl=1000), now)


def test_thousands_of_withdrawn_races_fit_into_their_column() -> None:
    """After an outage a fleet withdraws all that it tried; the row must stay one that can be written."""
    entry = withdrawn(2000)
    assert len(row_of(entry)["withdrawn"]) < TEXT_OF_MYSQL / 2


def test_the_latest_withdrawn_races_are_the_ones_remembered() -> None:
    """Their requests are the likeliest to be on their way still."""
    entry = withdrawn(2000)
    for i in range(1900, 2000):
        assert not race(entry, f"{i:032x}", 1_002_001).ok


def test_tombstones_whose_time_is_over_go_with_the_next_win() -> None:
    """PostgreSQL decides a race in one statement only where there are none."""
    entry = withdrawn(3)
    early = race(entry, "b" * 32, 1_000_010)
    assert len(early.entry.withdrawn) == 3
    late = race(entry, "b" * 32, 1_000_010 + TOMBSTONE_LIFE)
    assert late.ok
    assert late.entry.withdrawn == ()
