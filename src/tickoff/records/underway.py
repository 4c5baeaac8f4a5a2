"""Calls that were started: those that run, and those that were given up and go on running."""

from __future__ import annotations

from .claim import Call


class UnderWay:
    """The caller sees to it that one thread at a time is here."""

    def __init__(self) -> None:
        self.running: set[Call] = set()
        self._abandoned: set[Call] = set()

    @property
    def places(self) -> int:
        """How many places are taken."""
        return len(self.running) + len(self._abandoned)

    @property
    def abandoned(self) -> int:
        """How many go on with nobody waiting."""
        return len(self._abandoned)

    def ends(self, call: Call) -> bool:
        """It has ended; False when it was given up before."""
        if call not in self.running:
            self._abandoned.discard(call)
            return False
        self.running.discard(call)
        return True

    def is_given_up(self, call: Call) -> bool:
        """It goes on and keeps its place; False when it has ended, or was given up before."""
        if call not in self.running:
            return False
        self.running.discard(call)
        self._abandoned.add(call)
        return True
