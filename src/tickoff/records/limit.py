"""`concurrency="auto"`: as many calls at once as make the work faster, found by trying.

More calls are tried as long as they bring more answers a second; when they only make each call slower, the
former number is kept for a while. A `Defer`, a time-out or calls that have become much slower take it down.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from ..counts import LARGEST
from ..errors import ConfigError

_LEAST, _MOST = 1, 64
_SHORTEST = 0.25
"""Seconds that one number is tried at least…"""

_CALLS = 3
"""…and until each of them was made so often."""

_FAST, _STEP = 2.0, 1.25
"""It doubles until that no longer pays, then it grows by a quarter."""

_PAYS = 0.35
"""The part of the growth that must come back as answers a second."""

_BACK = 0.6
"""What is left of it after a `Defer`, a time-out, or when calls have become slower."""

_SLOWER = 1.6
"""So much slower at the same number, the provider has degraded."""

_REST = 8
"""Trials to stay at a number before more is tried again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most calls at once."""

    least: int
    most: int


def concurrency_of(value: object) -> int | Bounds:
    """Read a number, "auto", or the bounds to find one between: (4, 200)."""
    if value == "auto":
        return Bounds(_LEAST, _MOST)
    if isinstance(value, tuple) and len(value) == 2 and all(map(_is_count, value)):
        least, most = value
        if least < most:
            return Bounds(least, most)
    if isinstance(value, int) and _is_count(value):
        return value
    raise ConfigError(
        f'concurrency={value!r} is not a number above zero; give 1 or more, "auto", '
        "or the bounds to find a number between: (4, 200)"
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST


class Limit:
    """How many calls may be under way, learnt from how they end; safe to use from all threads."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._guard = threading.Lock()
        self.size = bounds.least
        self._factor = _FAST
        self._before: tuple[int, float] | None = None
        """The number before this one, and its answers a second."""
        self._calm = math.inf
        """The time a call took at this number when it was found good."""
        self._rest = 0
        self._deaf_until = -math.inf
        self._changed = -math.inf
        self._begun, self._calls, self._took, self._full = -math.inf, 0, 0.0, False

    def opens(self, now: float, running: int) -> float:
        """Whether there is room for another call."""
        if running < self.size:
            return now
        self._full = True
        return math.inf

    def ended(self, took: float, now: float) -> None:
        """A call ended, well or not, after so many seconds."""
        with self._guard:
            if now - took < self._changed:
                return  # it was under way before, beside another number of calls
            if math.isinf(self._begun):
                self._begun = now
                return
            self._calls += 1
            self._took += took
            if now - self._begun >= _SHORTEST and self._calls >= _CALLS * self.size:
                self._judge(now)

    def overloaded(self, now: float) -> None:
        """The provider said so, or did not answer in time; once for calls that were under way together."""
        with self._guard:
            if now >= self._deaf_until:
                self._fall(now)

    def _judge(self, now: float) -> None:
        """Enough was seen of this number."""
        rate, took = self._calls / (now - self._begun), self._took / self._calls
        if took > self._calm * _SLOWER:
            self._fall(now)
        elif not self._full:
            self._begin(now)  # fewer were asked for than may be: nothing is learnt
        elif self._rest > 0:
            self._rest -= 1
            self._begin(now)
        elif self._before is not None and not self._paid(rate):
            self._return(now)
        else:
            self._try_on(rate, took, now)

    def _paid(self, rate: float) -> bool:
        """Whether more calls brought more answers, or fewer calls hardly fewer."""
        former, former_rate = self._before or (self.size, rate)
        return rate >= former_rate * (1 + _PAYS * (self.size / former - 1))

    def _try_on(self, rate: float, took: float, now: float) -> None:
        former, wanted = self.size, math.floor(self.size * self._factor)
        self._before = (former, rate)
        self._set(max(wanted, former + 1) if self._factor > 1 else min(wanted, former - 1), now)
        if self.size == former:  # at a bound
            self._settle(took)

    def _return(self, now: float) -> None:
        """It did not pay: the former number, for a while."""
        former, rate = self._before or (self.size, 0.0)
        self._set(former, now)
        self._settle(former / rate if rate else math.inf)

    def _settle(self, took: float) -> None:
        """Stay here for a while; the next trial goes the other way."""
        self._factor = 1 / _STEP if self._factor > 1 else _STEP
        self._before, self._rest, self._calm = None, _REST, took

    def _fall(self, now: float) -> None:
        typical = self._took / self._calls if self._calls else 0.0
        self._deaf_until = now + max(_SHORTEST, 2 * typical)
        self._factor = 1 / _STEP
        self._before, self._rest, self._calm = None, 1, math.inf
        self._set(math.floor(self.size * _BACK), now)

    def _set(self, size: int, now: float) -> None:
        self.size = max(self._bounds.least, min(self._bounds.most, size))
        self._changed = now
        self._begin(-math.inf)

    def _begin(self, now: float) -> None:
        self._begun, self._calls, self._took, self._full = now, 0, 0.0, False
