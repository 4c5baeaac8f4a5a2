"""Where the next claim looks: above the highest key claimed, so that what is done is not walked again.

At the end it begins anew, because rows may have become PENDING behind it, and so it does every claim TTL.
How soon it begins anew depends on what a walk from the beginning costs: an idle fleet must not read a
large table all the time.
"""

from __future__ import annotations

from ..tables.base import Batch, Key

_REST = 50
"""A walk from the beginning is followed by a pause of so many times what its first claim took…"""

_SHORTEST_REST = 0.05
"""…and of no fewer seconds than this."""


class Floor:
    """The key above which one worker claims; None is the beginning."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._key: Key | None = None
        self._highest: Key | None = None
        self._begun = float("-inf")
        self._rest = 0.0
        self._first = True
        self._found = False

    @property
    def key(self) -> Key | None:
        """Where the walk stands."""
        return self._key

    @property
    def rest(self) -> float:
        """How long to wait before the next claim from here when there was nothing."""
        return self._rest if self._key is None else 0.0

    def begin(self, now: float) -> Key | None:
        """Where to claim from at this instant."""
        if now >= self._begun + self._every:
            self._begin_anew(now)
        return self._key

    def learn(self, batch: Batch, took: float, now: float) -> bool:
        """Take in what a claim found; whether there is nothing more for the moment."""
        if self._first:
            self._first = False
            self._rest = min(self._every, max(_SHORTEST_REST, took * _REST))
        if batch.records:
            self._found = True
            self._key = self._highest = batch.records[-1].key
        return batch.exhausted and not self._turn_round(now)

    def lower(self, key: Key | None) -> None:
        """Rows became PENDING behind it: go back to there."""
        self._key = key

    def _turn_round(self, now: float) -> bool:
        """At the end: begin anew if the last walk found something or is long past."""
        rested = now >= self._begun + self._rest
        if rested and (self._found or self._key is not None):
            self._begin_anew(now)
            return True
        self._key = self._highest
        return False

    def _begin_anew(self, now: float) -> None:
        self._key = None
        self._begun = now
        self._first = True
        self._found = False
