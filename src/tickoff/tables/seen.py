"""What is seen of a table of records without changing it: what is left, who holds what, why a row waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from .base import Key


@dataclass(frozen=True, slots=True)
class Left:
    """What is not decided yet."""

    pending: bool
    in_flight: bool
    wake: float | None
    """Seconds until the first of them may be claimed or swept, 0: one is claimable; None: none left."""

    @property
    def any(self) -> bool:
        """Whether a pass is not over."""
        return self.pending or self.in_flight


@dataclass(frozen=True, slots=True)
class Holding:
    """What one server has claimed."""

    owner: str
    claims: int
    records: int
    """How many it claimed; those it has settled since are counted until the claim is closed."""
    until: datetime
    """When the first of these claims runs out."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One record, and why it is where it is."""

    key: Key
    row: sa.Row[Any]
    state: str
    attempts: int
    error: str | None
    until: datetime | None
    """The claim's end while IN_FLIGHT, not-before while PENDING, the end once DONE or FAILED."""
    claim: str | None
    suspect: bool
    owner: str | None
    """Who holds it, while IN_FLIGHT."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """What stands in the result columns."""
    changed: bool = False
    """DONE, and its row is another since it was claimed: told of records in a companion only."""
