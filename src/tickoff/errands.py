"""What a store is still to be told once it answers again: races that were given up, ticks that ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from .errors import TickoffError
from .stores.base import LeaseStore

_log = logging.getLogger("tickoff")

_EVERY = 0.5
_WORTH_IT_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Errand:
    """Something safe to repeat, and what to say when it was in vain."""

    tell: Callable[[LeaseStore], object]
    in_vain: str


class Errands:
    """Tried again and again until each got through, or is worth nothing any more."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Errand, float]] = {}
        self.due = math.inf
        """When the next try is due."""

    def add(self, token: str, errand: Errand, now: float) -> None:
        """Take on an errand about this token, to be tried at once."""
        self._open[token] = (errand, now + _WORTH_IT_FOR)
        self.due = 0.0

    def run(self, store: LeaseStore, now: float) -> None:
        """Try each that is open."""
        for token, (errand, until) in list(self._open.items()):
            if now >= until:
                _log.warning("%s", errand.in_vain)
            elif not _told(errand, store):
                continue
            self._open.pop(token, None)
        self.due = now + _EVERY if self._open else math.inf

    def clear(self) -> None:
        """Forget them."""
        self._open = {}
        self.due = math.inf

    def __len__(self) -> int:
        return len(self._open)


def _told(errand: Errand, store: LeaseStore) -> bool:
    try:
        errand.tell(store)
    except TickoffError:
        return False
    return True
