"""How often a tick may be started: once, again after a failure, or after a crash as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..counts import count
from ..errors import ConfigError

Recover = Literal["next", "now"]

TAKEOVERS = 3
"""Starts of a tick that is taken over from crashed servers, unless `attempts` says otherwise."""


@dataclass(frozen=True, slots=True)
class Starts:
    """How many there may be, and whether another server takes a crashed one over."""

    attempts: int
    takeover: bool


def starts(attempts: int | None, recover: str) -> Starts:
    """What the options `attempts` and `recover` mean, checked."""
    if recover not in ("next", "now"):
        raise ConfigError(f"recover={recover!r} is unknown; use 'next' or 'now'")
    takeover = recover == "now"
    if attempts is None:
        return Starts(TAKEOVERS if takeover else 1, takeover)
    return Starts(count(attempts, "attempts"), takeover)
