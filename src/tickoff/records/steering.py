"""Paused or not, as all servers see it: kept by the lease store under a name of its own."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Entry
from ..names import owner
from ..stores.base import LeaseStore


@dataclass(frozen=True, slots=True)
class Steered:
    """What an operator or the work said last."""

    paused: bool = False
    by: str = ""
    why: str = ""
    at: int = 0
    """When, in ms by the store's clock; a store that says less has forgotten."""


class Steering:
    """Pauses and resumes one job's records on all servers, and remembers what was said last."""

    def __init__(self, name: str, store: LeaseStore) -> None:
        self._name = name
        self._store = store
        self.last = Steered()

    def pause(self, why: str, by: str = "") -> Steered:
        """Stop the work everywhere."""
        return self._learn(self._store.steer(self._name, by or owner(), why).entry)

    def resume(self, by: str = "") -> Steered:
        """Go on everywhere."""
        return self._learn(self._store.steer(self._name, by or owner(), None).entry)

    def read(self) -> Steered:
        """What was said last; a store that forgot it is told again."""
        entry = self._store.read([self._name])[0].entry
        if entry.steered < self.last.at and self.last.paused:
            return self.pause(self.last.why, self.last.by)
        return self._learn(entry)

    def _learn(self, entry: Entry) -> Steered:
        self.last = Steered(entry.paused, entry.paused_by, entry.paused_why, entry.steered)
        return self.last
