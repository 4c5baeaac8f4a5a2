"""Under which names the lease store keeps what belongs to a job over records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Names that no lock or job of the user's should have: `records:NAME` and `sweep:NAME`."""

    board: str
    """Paused or not is kept under it, and the servers' reports are posted on it."""
    sweep: str
    """The sweep is raced for under it."""


def names_of(job: str, full: Callable[[str], str]) -> Names:
    """The names for a job; `full` puts the namespace in front."""
    return Names(full(f"records:{job}"), full(f"sweep:{job}"))
