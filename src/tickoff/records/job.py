"""One job over records, as its decorator described it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..tables.base import Plan
from ..work import is_async
from .backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJob:
    """What to call for which records, how many at a time, and how long to try."""

    name: str
    """The full name, namespace included."""
    function: Callable[..., Any]
    plan: Plan
    concurrency: int = 1
    per_call: int | None = None
    """The function gets a list of so many records; None: one record by itself."""
    ttl: float = 300.0
    """Seconds a claim lasts without renewal."""
    timeout: float = 300.0
    """Seconds one call may take."""
    attempts: int = 5
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def records_per_call(self) -> int:
        """How many records one call takes at most."""
        return self.per_call or 1

    @property
    def at_once(self) -> int:
        """How many records may be under way in this process."""
        return self.concurrency * self.records_per_call

    @property
    def is_async(self) -> bool:
        """Whether the function is awaited on the shared loop, instead of being called in a thread."""
        return is_async(self.function)
