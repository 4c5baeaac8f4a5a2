"""`Defer(after)` holds back every server: the provider said how long, on a board that all of them read."""

from __future__ import annotations

import math
import threading

from ..leases.storetime import StoreTime
from ..model import Note
from ..names import owner
from ..stores.base import LeaseStore

_WORTH = 0.02
"""A hold that ends so few seconds later than the one posted is not worth a note of its own."""


class Hold:
    """Until when no call is to be made; safe to use from all threads."""

    def __init__(self, board: str, store: LeaseStore, time: StoreTime) -> None:
        self._board = board
        self._store = store
        self._time = time
        self._guard = threading.Lock()
        self._until = -math.inf
        self._said = -math.inf
        self._why = ""

    def opens(self, _now: float) -> float:
        """When calls may be made again."""
        return self._until

    def defer(self, wait: float, why: str, now: float) -> bool:
        """The provider wants to be left alone for so long; whether that is news to the others."""
        with self._guard:
            if now + wait <= self._until:
                return False
            self._until, self._why = now + wait, why
            return self._until > self._said + _WORTH

    def tell(self, now: float) -> None:
        """Post what this process was told."""
        with self._guard:
            until, why = self._until, self._why
        if until <= now or until <= self._said + _WORTH:
            return
        self._store.post(self._board, owner(), why, math.ceil((until - now) * 1000))
        self._said = until

    def hear(self, note: Note) -> None:
        """Take in what another server was told."""
        if note.key != owner():
            self._obey(self._time.local(note.until), note.text)

    def why(self, now: float) -> str:
        """Why calls wait, empty when they do not."""
        return f"deferred for {self._until - now:.1f} s: {self._why}" if self._until > now else ""

    def _obey(self, until: float, why: str) -> None:
        with self._guard:
            if until > self._until:
                self._until, self._why = until, why
                self._said = until
