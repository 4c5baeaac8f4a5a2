"""Everything Tickoff raises, in one tree.

TickoffError
├── ConfigError        (also a ValueError) something was configured wrongly
├── StoreUnreachable   no answer from the store: neither won nor lost
├── LockHeld           `with jobs.lock(...)` lost the race
└── LeaseLost          the lease ran out or was taken away while the work was under way
"""

from __future__ import annotations

from .model import Skipped


class TickoffError(Exception):
    """The root of every error Tickoff raises."""


class ConfigError(TickoffError, ValueError):
    """Something was configured wrongly; the message names the field and the remedy."""


class StoreUnreachable(TickoffError):
    """The store gave no answer, or refused to work; it is never mistaken for a lost race."""


class LockHeld(TickoffError):
    """The lock is held elsewhere, so the body did not run; `skipped` says by whom and until when."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(str(skipped))
        self.skipped = skipped


class LeaseLost(TickoffError):
    """The lease is no longer ours; whatever the work still writes needs the fence to be safe."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the lease on {name} is lost: {why}")
        self.name = name
        self.why = why

    def __reduce__(self) -> tuple[type[LeaseLost], tuple[str, str]]:
        return type(self), (self.name, self.why)
