"""Everything Tickoff raises, in one tree.

TickoffError
├── ConfigError        (also a ValueError) something was configured wrongly
├── StoreUnreachable   no answer from the store: neither won nor lost
├── LockHeld           `with jobs.lock(...)` lost the race
├── LeaseLost          the lease ran out or was taken away while the work was under way
├── StaleFence         a newer holder has guarded its writes in this database
└── FenceHeld          another transaction did not let go of the fence in time

Not in the tree, because they are raised by the work and not by Tickoff: what a function of
`@jobs.each` says of its record beside an answer (`Defer`, `Reject`, `Pause`). Any other exception is
the record's fault: an attempt is charged and it is tried again later.
"""

from __future__ import annotations

from datetime import timedelta

from .model import Skipped

_LONGEST = 600
_HALF = 290


class TickoffError(Exception):
    """The root of every error Tickoff raises."""


class ConfigError(TickoffError, ValueError):
    """Something was configured wrongly; the message names the field and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(_told(message))


def _told(message: str) -> str:
    """In one line of bearable length, whatever was quoted in it: it ends on a terminal or in a log."""
    line = printable(message)
    return line if len(line) <= _LONGEST else f"{line[:_HALF]}…{line[-_HALF:]}"


def printable(text: str) -> str:
    """The text in signs that every terminal and every database takes: no NUL, no halves of characters."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


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


class StaleFence(TickoffError):
    """A newer holder of the name has written to this database: leave the transaction, keep nothing of it.

    `high` is the highest fence the database has seen; our next race tells the store of it.
    """

    def __init__(self, name: str, fence: int, high: int) -> None:
        super().__init__(
            f"the fence {fence} of {name} is stale: a holder with {high} has written to this database; "
            "roll the transaction back"
        )
        self.name = name
        self.fence = fence
        self.high = high

    def __reduce__(self) -> tuple[type[StaleFence], tuple[str, int, int]]:
        return type(self), (self.name, self.fence, self.high)


class FenceHeld(TickoffError):
    """Another transaction has guarded the name and has not ended; roll back and try again later."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"another transaction holds the fence of {name} and did not end in time, perhaps because its "
            "process is stopped; roll this transaction back and try again"
        )
        self.name = name

    def __reduce__(self) -> tuple[type[FenceHeld], tuple[str]]:
        return type(self), (self.name,)


_NOT_SAID = 30.0
"""Seconds to wait for a provider that does not say how long."""


class Defer(Exception):
    """Raised by the work: the provider's fault, not the record's; try again after a while, uncharged.

    `after` is a duration, or what an HTTP answer has as Retry-After: seconds, a date, or None for not there.
    """

    def __init__(self, after: str | float | timedelta | None = _NOT_SAID, why: str = "") -> None:
        super().__init__(after, why)
        self.after = _NOT_SAID if after is None else after
        self.why = why

    def __str__(self) -> str:
        return self.why or f"deferred by {self.after}"


class Reject(Exception):
    """Raised by the work: this record can never be done; it is FAILED at once, with the reason."""

    def __init__(self, why: str = "rejected by the work") -> None:
        super().__init__(why)
        self.why = why


class Pause(Exception):
    """Raised by the work: nothing can be done now (a wrong key, a spent budget); stop the pass everywhere.

    Claims are given back uncharged; `tickoff records resume NAME` or `jobs.records(NAME).resume()` goes on.
    """

    def __init__(self, why: str = "paused by the work") -> None:
        super().__init__(why)
        self.why = why
