"""Counts as people give them: whole numbers from 1, small enough for every store."""

from __future__ import annotations

from .errors import ConfigError

LARGEST = 1_000_000
"""Beyond this nobody means it, and no column of a database need hold it."""


def count(value: object, field: str) -> int:
    """Read a count; `field` is how the error calls it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{field}={value!r:.60} is not a count; use a whole number from 1")
    if not 1 <= value <= LARGEST:
        raise ConfigError(f"{field} is out of range; use a whole number from 1 to {LARGEST:,}")
    return value
