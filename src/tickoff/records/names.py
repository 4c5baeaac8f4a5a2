"""Under which names the lease store keeps what belongs to a job over records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Names that no lock or job of the user's should have: `records:NAME`, `provider:NAME`, `sweep:NAME`."""

    board: str
    """Paused or not is kept under it, and the servers' reports are posted on it."""
    provider: str
    """What is known of the provider is posted on it, and its rate is lent under it."""
    sweep: str
    """The sweep is raced for under it."""


_BOARD, _PROVIDER, _SWEEP = "records:", "provider:", "sweep:"


def names_of(job: str, full: Callable[[str], str]) -> Names:
    """The names for a job; `full` puts the namespace in front."""
    return Names(full(f"{_BOARD}{job}"), full(f"{_PROVIDER}{job}"), full(f"{_SWEEP}{job}"))


def jobs_among(names: Iterable[str], prefix: str) -> set[str]:
    """The jobs over records that a store keeps something of: each is swept, and may be steered."""
    begins = (f"{prefix}{_BOARD}", f"{prefix}{_SWEEP}")
    return {name.removeprefix(begin) for name in names for begin in begins if name.startswith(begin)}
