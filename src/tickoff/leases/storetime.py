"""The store's time, estimated between its answers: loops fire by the referee's clock, not by ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ground.clocks import elapsed, wall

_DRIFT = 0.2
"""Milliseconds a second by which clocks may drift apart: old samples give way to less exact new ones."""

_STEP = 50.0
"""Milliseconds by which an answer must contradict the estimate to replace it at once: the clock was set."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the store's clock was ahead of ours, how far off that may be, and when it was learnt."""

    ahead: float
    doubt: float
    at: float


class StoreTime:
    """Local monotonic time plus what the store was ahead of it in the best recent answer."""

    def __init__(self) -> None:
        self._sample: _Sample | None = None

    def learn(self, told: int, sent: float, received: float) -> None:
        """Take in a time told by the store in answer to a request that was sent and answered then."""
        middle = (sent + received) / 2
        new = _Sample(told - middle * 1000, (received - sent) * 500, received)
        old = self._sample
        if old is None or self._better(new, old):
            self._sample = new

    def now(self) -> float:
        """The store's time in ms, as well as we know; our own clock's before the first answer."""
        if self._sample is None:
            return float(wall())
        return elapsed() * 1000 + self._sample.ahead

    def local(self, instant: float) -> float:
        """When, by `elapsed()`, the store will reach this instant."""
        return elapsed() + (instant - self.now()) / 1000

    @property
    def known(self) -> bool:
        """Whether the store has told us its time yet."""
        return self._sample is not None

    @property
    def skew(self) -> float:
        """Seconds by which this machine's clock is ahead of the store's; nan before the first answer."""
        return (wall() - self.now()) / 1000 if self.known else math.nan

    @staticmethod
    def _better(new: _Sample, old: _Sample) -> bool:
        contradicts = abs(new.ahead - old.ahead) > new.doubt + old.doubt + _STEP
        return contradicts or new.doubt <= old.doubt + (new.at - old.at) * _DRIFT
