"""A job: a named function on a schedule. A post: one that runs while its server leads. Nothing here acts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..schedules.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the decorator said, checked; durations in ms, the name with its namespace."""

    name: str
    schedule: Schedule
    work: Callable[..., Any]
    asynchronous: bool = False
    wants_tick: bool = False
    ttl: int
    timeout: float | None = None
    attempts: int = 1
    takeover: bool = False
    catch_up: bool = False
    jitter: int = 0
    patient: bool = False

    @property
    def function(self) -> str:
        """Where the function is: two servers that mean different ones by one name are told apart by it."""
        return place_of(self.work)

    @property
    def again(self) -> bool:
        """Whether a tick may be started more than once, so that losers stand by until it is over."""
        return self.takeover or self.attempts > 1

    def delay(self, tick: int) -> int:
        """The jitter of this tick: the same on all servers, another one for the next tick."""
        if not self.jitter:
            return 0
        digest = blake2b(f"{self.name}\n{tick}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % (self.jitter + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What `@jobs.leader` said: the name to be won, and the work of whoever holds it."""

    name: str
    work: Callable[..., Any]
    ttl: int
    asynchronous: bool
    wants_lease: bool

    @property
    def function(self) -> str:
        """Where the function is."""
        return place_of(self.work)


def place_of(work: Callable[..., Any]) -> str:
    """The module and the name of a function; a callable object goes by its type."""
    named = work if hasattr(work, "__qualname__") else type(work)
    return f"{_module(named.__module__)}:{named.__qualname__}"


def _module(name: str) -> str:
    """A module by its name; that of a program by the name it would have if it were imported."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(main, "__file__", None) or "__main__").stem
