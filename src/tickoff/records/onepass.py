"""One pass: work until no record is PENDING (backing off included) or IN_FLIGHT on any server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..serve import wind_down
from ..tables.base import RecordTable, State
from .steering import Steered
from .tally import Counts
from .worker import Worker

_LOOK = 0.02
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_REST = 20
"""A look at what is left is followed by a pause of so many times what it took."""


@dataclass(frozen=True, slots=True)
class Passed:
    """How a pass ended."""

    counts: Counts = field(default_factory=Counts)
    """What this process did in it."""
    failed: int = 0
    """Records that are FAILED now, whoever worked them."""
    paused: bool = False
    why: str = ""
    """Who paused it, and why."""
    interrupted: bool = False
    """Whether it was told to stop before the end."""


class Pass:
    """Runs a worker for one pass."""

    def __init__(self, worker: Worker, table: RecordTable, grace: float) -> None:
        self._worker = worker
        self._table = table
        self._grace = grace
        self._look_at = 0.0

    def run(self, look: Callable[[], None], stop: threading.Event) -> Passed:
        """Work until nothing is left, paused, or told to stop; `look` is called now and then."""
        self._worker.start()
        try:
            paused = self._until_over(look, stop)
        finally:
            wind_down([self._worker], self._grace, _never)
        failed = self._table.counts().get(State.FAILED, 0)
        self._table.close()
        why = f"by {paused.by}: {paused.why}" if paused else ""
        return Passed(self._worker.counts, failed, paused is not None, why, stop.is_set())

    def _until_over(self, look: Callable[[], None], stop: threading.Event) -> Steered | None:
        while not stop.is_set() and not self._nothing_left(elapsed()):
            if self._worker.paused:
                return self._worker.paused
            look()
            stop.wait(_LOOK)
        return None

    def _nothing_left(self, now: float) -> bool:
        """Whether a look at the table, taken seldom and only when idle, finds all decided."""
        if not self._worker.idle or now < self._look_at:
            return False
        try:
            over = not self._table.left().any
        except StoreUnreachable:  # the worker says so, and goes on trying
            over = False
        took = elapsed() - now
        self._look_at = elapsed() + min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, took * _REST))
        return over


def _never() -> bool:
    return False
