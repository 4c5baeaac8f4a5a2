"""The protocol of a store: few atomic primitives, each one round trip where the engine allows.

Every primitive is safe to repeat: it is guarded by a token that is used once. No primitive waits for
another server; each answers or raises `StoreUnreachable` within the store's I/O limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..model import Answer, Bid, Ending, Hold, Note, Run

IO_LIMIT = 5.0
"""Seconds a caller waits for a store before it counts as unreachable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something found amiss: what it is, what can go wrong, what to do; `check` names the kind."""

    check: str
    what: str
    danger: str
    remedy: str


@runtime_checkable
class Examined(Protocol):
    """A store that can tell what is amiss with the engine it stands on; it need not be able to."""

    def examine(self) -> list[Finding]:
        """Look at the engine, its settings and the schema; changes nothing."""
        ...


@runtime_checkable
class LeaseStore(Protocol):
    """A place that referees races. `testing.contract` holds every store to the same behaviour."""

    @property
    def address(self) -> str:
        """Where the store is, in words fit for a log: never with a password."""
        ...

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Decide each bid atomically, by the store's clock."""
        ...

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race in the order given, but stop once `limit` are won; None for bids left undecided.

        A store may leave more undecided, as long as it decides the first `limit` of them.
        """
        ...

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong the leases that are still their holder's."""
        ...

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Record how ticks ended and let go of their leases."""
        ...

    def release(self, name: str, token: str) -> bool:
        """Let go if the token still holds the name; say whether it did."""
        ...

    def withdraw(self, name: str, token: str) -> bool:
        """Release, and make sure that a race still under way with this token wins nothing."""
        ...

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take the name from whoever holds it; the fence rises, so the old holder stays out."""
        ...

    def steer(self, name: str, by: str, why: str | None) -> Answer:
        """Pause a name for a reason, or resume it (None)."""
        ...

    def read(self, names: Sequence[str]) -> list[Answer]:
        """What is kept of each name; `ok` tells whether it is held right now."""
        ...

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, sorted."""
        ...

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        ...

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on, in any order; one trip for all of them."""
        ...

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board, over the one with the same key, for `life` ms; says the store's time."""
        ...

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        ...

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        ...

    def now(self) -> int:
        """The store's clock, in milliseconds since the epoch."""
        ...

    def within(self, limit: float) -> LeaseStore:
        """The same store over connections of its own, which answer or fail within `limit` seconds."""
        ...

    def migrate(self) -> str:
        """Bring what the store keeps up to date; say what was done."""
        ...

    def forget_connections(self) -> None:
        """Drop inherited connections without closing them: called in the child after a fork."""
        ...

    def close(self) -> None:
        """Close the connections; the store may be used again and opens new ones."""
        ...
