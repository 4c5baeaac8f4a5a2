"""The course of a child under a lease: TERM, and then KILL, once its time or its lease is over."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

GRACE = 5.0
"""Seconds between TERM and KILL when the time is over."""

KILL_AFTER = 0.9
"""Fraction of the TTL without renewal by which a child that lost its lease is killed."""


class Cause(StrEnum):
    """Why a child was ended."""

    TIMED_OUT = "timed out"
    LOST = "lost"


class Holding(Protocol):
    """What the course needs to know of a lease."""

    @property
    def lost(self) -> bool:
        """Whether it is no longer ours."""
        ...

    @property
    def ttl(self) -> float:
        """How long it lasts without renewal."""
        ...

    deadline: float


@dataclass(slots=True)
class Course:
    """What is to be sent to a child, and when; knows neither the child nor a clock."""

    lease: Holding
    timeout_at: float = math.inf
    cause: Cause | None = None
    kill_at: float = math.inf
    killed: bool = False

    def step(self, now: float) -> int | None:
        """The signal that is due, if one is."""
        if self.cause is not Cause.LOST and self.lease.lost:
            return self._lose()
        if self.cause is None and now >= self.timeout_at:
            self.cause, self.kill_at = Cause.TIMED_OUT, now + GRACE
            return signal.SIGTERM
        if now >= self.kill_at:
            self.kill_at, self.killed = math.inf, True
            return signal.SIGKILL
        return None

    @property
    def due(self) -> float:
        """When the next step is due, should nothing else happen."""
        return self.kill_at if self.cause else self.timeout_at

    def _lose(self) -> int:
        """Lost while it had its grace already, or not: the store's deadline is the nearer one that counts."""
        self.cause = Cause.LOST
        self.kill_at = min(self.kill_at, self.lease.deadline - self.lease.ttl * (1 - KILL_AFTER))
        return signal.SIGTERM
