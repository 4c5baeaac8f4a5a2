"""Durations as people write them: "90s", "5m", "1h30m", 30, timedelta."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from functools import lru_cache

from .errors import ConfigError

Duration = str | int | float | timedelta

_LARGEST = 10**15  # larger integers need not fit a float, nor a message

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPELLED = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_TEXT = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

LONGEST = 36_500 * 86400.0
"""A hundred years: timers and dates end somewhere beyond."""

SHORTEST_TTL = 0.1
LONGEST_TTL = 7 * 86400.0

SHORTEST_PERIOD = 0.1
"""A tick is a race and a settlement: oftener than ten times a second, servers would do little else."""

LONGEST_PERIOD = 31 * 86400.0
"""Beyond a month people mean the calendar, which a period counted from the epoch does not follow."""


def seconds(value: Duration, field: str) -> float:
    """Read a duration; `field` is how the error calls it."""
    length = _length(value, field)
    if abs(length) > LONGEST:
        raise ConfigError(f"{field}={value!r:.60} is longer than a hundred years; give a shorter one")
    return length


def _length(value: Duration, field: str) -> float:
    given = _hashable(value, field)
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, bool):
        raise ConfigError(f"{field}={given!r} is not a duration; give a number of seconds")
    if isinstance(given, str):
        return _parse(given.strip(), field)
    if isinstance(given, int) and abs(given) > _LARGEST:
        raise ConfigError(f"{field} is too large a number; give a number of seconds")
    if not math.isfinite(given):
        raise ConfigError(f"{field}={given!r} is not a duration; give a finite number of seconds")
    return float(given)


def ttl_ms(value: Duration, field: str = "ttl") -> int:
    """Read the TTL of a lease, in milliseconds; one too short to be renewed in time is refused."""
    return _ttl_ms(_hashable(value, field), field)


def wait_seconds(value: Duration | None, field: str = "wait") -> float:
    """Read how long to queue for a lock; None means not at all."""
    return 0.0 if value is None else _wait_seconds(_hashable(value, field), field)


def timeout_seconds(value: Duration | None, field: str = "timeout") -> float | None:
    """Read how long work may last; None means as long as it likes."""
    if value is None:
        return None
    length = seconds(value, field)
    if length <= 0:
        raise ConfigError(f'{field}={value!r} leaves no time; use such as "10m", or leave it out')
    return length


def period_ms(value: Duration, field: str = "every") -> int:
    """Read the time between two ticks, in milliseconds."""
    length = _length(value, field)
    if length < SHORTEST_PERIOD:
        raise ConfigError(f'{field}={value!r:.60} is too short to race for each tick; use "100ms" or more')
    if length > LONGEST_PERIOD:
        raise ConfigError(f'{field}={value!r:.60} is longer than 31 days; use cron, such as "0 0 1 * *"')
    if abs(length * 1000 - round(length * 1000)) > 1e-6:
        raise ConfigError(f"{field}={value!r:.60} is no whole number of milliseconds; round it")
    return round(length * 1000)


def spelled(ms: int) -> str:
    """A duration in its one spelling, such as "1h30m": equal durations, equal text."""
    parts = []
    for unit, length in _SPELLED.items():
        count, ms = divmod(ms, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _hashable(value: Duration, field: str) -> Duration:
    if isinstance(value, str | int | float | timedelta):
        return value
    raise ConfigError(
        f'{field}={value!r:.60} is not a duration; write "90s", "5m", a number of seconds or a timedelta'
    )


@lru_cache(maxsize=256, typed=True)  # locks in a loop read the same text again and again
def _ttl_ms(value: Duration, field: str) -> int:
    length = seconds(value, field)
    if length <= 0:
        raise ConfigError(f'{field}={value!r} is not above zero; a lease needs a time to live such as "60s"')
    if length < SHORTEST_TTL:
        raise ConfigError(f'{field}={value!r} is too short to be renewed in time; use "100ms" or more')
    if length > LONGEST_TTL:
        raise ConfigError(
            f'{field}={value!r} is longer than 7 days; leases are renewed while the work runs, so use "60s"'
        )
    return round(length * 1000)


@lru_cache(maxsize=256, typed=True)
def _wait_seconds(value: Duration, field: str) -> float:
    length = seconds(value, field)
    if length < 0:
        raise ConfigError(f'{field}={value!r} is below zero; use such as "10s", or 0 for no time at all')
    return length


def _parse(text: str, field: str) -> float:
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _TEXT.fullmatch(text):
        raise ConfigError(
            f'{field}="{text}" is not a duration; write "90s", "5m", "1h30m" or a number of seconds'
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
