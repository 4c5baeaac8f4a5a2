"""Loans of a rate, as pure functions: how much of a window's limit is lent, to whom next, and what is void.

A window is a stretch of the store's time, as long for everybody; its limit says how many calls the whole
fleet may make in it. What was not lent by its time is gone, and so is what was lent and not used when the
window ends: nothing of one window adds to another, so a server that dies takes no more than its loan.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loan:
    """Calls that may be made before the window ends: the `size` ones from number `first` of its limit on."""

    first: int
    size: int
    until: int
    """The end of the window, in ms by the store's clock."""
    now: int


@dataclass(frozen=True, slots=True)
class Lent:
    """What a store keeps of a rate: when its latest window began, and how many of its calls are lent."""

    begun: int = 0
    calls: int = 0


def lend(kept: Lent, window: int, limit: int, wanted: int, now: int) -> tuple[Lent, Loan]:
    """Lend up to `wanted` calls of the window that is now; nothing of one that is over already."""
    begun = now - now % window
    if kept.begun == begun + window:  # its clock stepped back, or somebody was faster
        return kept, Loan(kept.calls, 0, begun + window, now)
    lent = kept.calls if kept.begun == begun else 0
    first = max(lent, gone(window, limit, now))
    size = max(0, min(wanted, limit - first))
    return Lent(begun, first + size), Loan(first, size, begun + window, now)


def gone(window: int, limit: int, now: int) -> int:
    """How many calls of the window that is now had their time already, but for a few that may be late."""
    return max(0, limit * (now % window) // window - limit // LATE)


LATE = 33
"""One call in so many of a window may be lent after its time."""
