"""What a call has to pass before it starts: the circuit, a provider's wish, the concurrency, the rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from ..ground.clocks import elapsed
from ..ground.loops import Loop
from .circuit import Circuit
from .hold import Hold
from .lender import Lender
from .limit import Limit
from .purse import Purse

_SOON = 0.002
"""Seconds between two looks at gates that are open while callers wait."""


_ALL = 1_000_000


class Gate(Protocol):
    """Asked, under the hand's lock, before each call."""

    def admit(self, now: float, running: int) -> bool:
        """Whether a call may start at this instant, beside those that run; if so, it counts."""
        ...


class Open:
    """Nothing to pass."""

    def admit(self, _now: float, _running: int) -> bool:
        """Any call may start."""
        return True


class Gates:
    """All of them; who waits is woken when the last one opens."""

    def __init__(
        self, job: str, circuit: Circuit, hold: Hold, limit: Limit | None, purse: Purse | None
    ) -> None:
        self._circuit = circuit
        self._hold = hold
        self._limit = limit
        self._purse = purse
        self._loop = Loop(f"tickoff-gates-{job}", self.step)
        self._running = 0
        self.on_open: Callable[[int], bool] = _nobody
        """Told how many calls may start; says whether somebody was waiting for that."""
        self.lender: Lender | None = None

    def admit(self, now: float, running: int) -> bool:
        """Whether a call may start; if not, whoever asked is woken when it may."""
        self._running = running
        opens = self._opens_but_for_rate(now, running)
        if opens > now:
            self._wake_at(opens)
            return False
        if self._purse is not None and not self._purse.spend(now):
            self._want(self._purse, now)
            return False
        self._circuit.spend()
        return True

    def look(self) -> None:
        """Something has changed: see whether a call may start."""
        self._loop.wake_by(elapsed())

    def step(self, now: float) -> float | None:
        """Wake one who waits, if a call may start; when to look again."""
        opens = self._opens_but_for_rate(now, self._running)
        if self._purse is not None:
            opens = max(opens, self._purse.opens(now))
        if opens > now:
            return None if math.isinf(opens) else opens
        if self._purse is None:
            self.on_open(_ALL)
            return None
        return now + _SOON if self.on_open(1) else None

    def stop(self) -> None:
        """End the thread."""
        self._loop.stop()

    def _opens_but_for_rate(self, now: float, running: int) -> float:
        opens = max(self._circuit.opens(now, running), self._hold.opens(now))
        return opens if self._limit is None else max(opens, self._limit.opens(now, running))

    def _want(self, purse: Purse, now: float) -> None:
        self._wake_at(purse.opens(now))
        if self.lender is not None:
            self.lender.wanted()

    def _wake_at(self, opens: float) -> None:
        if not math.isinf(opens):
            self._loop.wake_by(opens)


def _nobody(_calls: int) -> bool:
    return False
