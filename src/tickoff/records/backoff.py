"""How long a record waits after a charged attempt: doubling, capped, spread out."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..durations import Duration, seconds
from ..errors import ConfigError

_CALMEST = 0.5
"""The spread: a wait is between this share of its length and the whole of it."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first wait and the longest one, in seconds; each attempt doubles the one before."""

    first: float = 1.0
    longest: float = 600.0

    def after(self, attempt: int, spread: float | None = None) -> float:
        """Seconds to wait after so many charged attempts; `spread` (0 to 1) is random unless given."""
        length = min(self.first * 2.0 ** min(attempt - 1, 60), self.longest)
        drawn = random.random() if spread is None else spread  # noqa: S311 - spreading out, not secrecy
        return length * (_CALMEST + (1 - _CALMEST) * drawn)


def backoff_of(value: Duration | tuple[Duration, Duration]) -> Backoff:
    """Read `backoff="1s"` (the first wait) or `backoff=("1s", "10m")` (and the longest one)."""
    parts = value if isinstance(value, tuple) else (value,)
    if len(parts) not in {1, 2}:
        raise ConfigError(f'backoff={value!r} is not a pair; write the first and the longest: ("1s", "10m")')
    read = [seconds(part, "backoff") for part in parts]
    first, longest = read[0], read[1] if len(read) == 2 else max(Backoff().longest, read[0])
    if not 0 <= first <= longest:
        raise ConfigError(f'backoff={value!r} does not grow; write the first and the longest: ("1s", "10m")')
    return Backoff(first, longest)
