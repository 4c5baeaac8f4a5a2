"""The protocol of a table of records: few atomic steps, each guarded by the claim's token.

Every step takes its locks in key order, passes over rows that other transactions hold locked, and decides by
the database's clock. Keys are never compared outside the database: only it knows its collations, so a caller
passes back what it was given. Nothing waits for another server; each step answers or raises
`StoreUnreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import sqlalchemy as sa

if TYPE_CHECKING:
    from .seen import Holding, Left, Standing

Key = tuple[Any, ...]
"""The values of the key columns, in their order."""


class State(StrEnum):
    """Where a record stands; the words are those in the user's table."""

    PENDING = "PENDING"
    IN_FLIGHT = "IN_FLIGHT"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which records are meant: a user's table, its key, the column of states, what is read and written."""

    table: str
    """Its name, or `schema.name`."""
    status: str
    """The column of states; the tracking columns are named after it."""
    key: tuple[str, ...] = ()
    """Key columns, unique together and never null; none: the primary key."""
    result: tuple[str, ...] = ()
    """Columns that a result is written to."""
    columns: tuple[str, ...] | None = None
    """Columns the user's function gets beside the key; None: all of the user's own."""
    where: str | sa.ColumnElement[bool] | None = None
    """Only these rows are records: SQL of the user's, or an expression."""
    companion: str | None = None
    """The table beside the user's that keeps states and results instead; the user's is only read."""

    def kept(self, key: tuple[str, ...]) -> Plan:
        """The plan as the table that keeps the states has it; `key` is that of the user's table."""
        return self if self.companion is None else replace(self, table=self.companion, key=key)


class Record(NamedTuple):
    """A claimed row: what the user's function gets, and how often it was charged before.

    A tuple, because a claim makes hundreds of them and a frozen dataclass takes three times as long to make.
    """

    key: Key
    row: sa.Row[Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What a claim got, in key order."""

    token: str
    """The token to settle, renew and give back with."""
    records: Sequence[Record]
    exhausted: bool
    """Whether fewer were there than asked for: from this floor on, nothing more is claimable now."""
    alone: bool = False
    """A suspect: should its process die, it is charged; so nothing else must run beside it."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Done(NamedTuple):
    """It worked: the values are written along with DONE. A tuple for the same reason as `Record`."""

    key: Key
    values: Mapping[str, Any] = _NOTHING


class Charged(NamedTuple):
    """The record's fault: an attempt is charged, and it is PENDING again after `wait` seconds."""

    key: Key
    error: str
    wait: float


class Deferred(NamedTuple):
    """The provider's fault: not charged, PENDING again after `wait` seconds."""

    key: Key
    why: str
    wait: float


class Failed(NamedTuple):
    """The record's last attempt, or a refusal by the user's function: charged, and FAILED."""

    key: Key
    error: str


Verdict = Done | Charged | Deferred | Failed


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a flush; every key of it is in exactly one of these."""

    written: frozenset[Key] = frozenset()
    """Written now, or by an earlier try whose answer was lost."""
    refused: frozenset[Key] = frozenset()
    """No longer ours: the answer came too late and was not written."""
    busy: frozenset[Key] = frozenset()
    """Locked by somebody's transaction: flush these again later."""
    culprits: Mapping[Key, str] = field(default_factory=dict)
    """Answers the database refused, with its words; still in flight and ours: settle them otherwise."""

    def __add__(self, other: Settled) -> Settled:
        return Settled(
            self.written | other.written,
            self.refused | other.refused,
            self.busy | other.busy,
            {**self.culprits, **other.culprits},
        )


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found of claims that ran out."""

    suspected: int = 0
    """PENDING again uncharged, but claimed alone from now on."""
    charged: int = 0
    """They were claimed alone, so their process's death was charged to them; PENDING again."""
    failed: int = 0
    """The same, and their attempts are used up."""
    busy: int = 0
    """Locked by somebody's transaction, left for the next sweep."""

    def __add__(self, other: Swept) -> Swept:
        return Swept(
            self.suspected + other.suspected,
            self.charged + other.charged,
            self.failed + other.failed,
            self.busy + other.busy,
        )

    @property
    def total(self) -> int:
        """How many records were put back or parked."""
        return self.suspected + self.charged + self.failed


@dataclass(frozen=True, slots=True)
class News:
    """What other servers did to the table that a worker must know of."""

    floor: Key | None
    """The worker's floor, lowered to where rows became PENDING behind it."""
    seen: frozenset[str]
    """Hand this back at the next call."""
    suspects: bool
    """Whether there may be suspects to claim."""


class RecordTable(Protocol):
    """Records in a user's table."""

    @property
    def address(self) -> str:
        """Where the table is, in words fit for a log."""
        ...

    def check(self) -> None:
        """Raise `ConfigError` unless table, columns, key and tracking columns are as they must be."""
        ...

    def install(self) -> list[str]:
        """Add what is missing, safe while others insert; the statements that were run."""
        ...

    def ddl(self) -> list[str]:
        """The statements for a table that has nothing yet; only a companion's key has to be looked up."""
        ...

    def uninstall(self, *, states: bool = False) -> list[str]:
        """Take the tracking columns away; the column of states stays unless asked for."""
        ...

    def claim(self, token: str, owner: str, limit: int, ttl: float, floor: Key | None = None) -> Batch:
        """Claim up to `limit` PENDING rows above the floor, in key order; suspects are passed over."""
        ...

    def claim_suspect(self, token: str, owner: str, ttl: float) -> Batch:
        """Claim one suspect, alone; `Batch.token` is marked, so use that one."""
        ...

    def claim_these(self, token: str, owner: str, keys: Sequence[Key], ttl: float) -> Batch:
        """Claim the rows of these keys that can be claimed now, suspects excepted."""
        ...

    def statements(self) -> list[str]:
        """The SQL of a claim, for people to read."""
        ...

    def settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool = False) -> Settled:
        """Write verdicts for records of this claim; `last` closes the claim when all of it is settled."""
        ...

    def renew(self, tokens: Sequence[str], ttl: float) -> frozenset[str]:
        """Prolong claims; the tokens that are still wholly ours."""
        ...

    def give_back(self, token: str, keys: Sequence[Key] | None = None, *, last: bool = False) -> int:
        """Make records that were not started PENDING as they were before; None: all of the claim."""
        ...

    def sweep(self, attempts: int, wait: float = 0.0, *, deep: bool = False) -> Swept:
        """Put back what claims that ran out have left; `deep` also finds rows whose claim nobody knows."""
        ...

    def news(self, floor: Key | None, seen: frozenset[str] = frozenset()) -> News:
        """What happened behind the floor since the last call; cheap, for once a second."""
        ...

    def retry(self, error_like: str | None = None) -> int:
        """FAILED → PENDING with no attempts charged, where the error is LIKE this."""
        ...

    def reopen(
        self,
        where: str | sa.ColumnElement[bool] | None = None,
        finished_before: datetime | None = None,
        *,
        changed: bool = False,
    ) -> int:
        """DONE → PENDING, for rows finished before an instant; their results stay until overwritten.

        `changed`: only those whose row is another since it was claimed, as only a companion can tell.
        """
        ...

    def changed(self) -> int:
        """How many DONE records have a row that is another since it was claimed; reads all of them."""
        ...

    def pass_name(self) -> str:
        """Which pass this is: another text after each `reopen`, the same for all servers."""
        ...

    def left(self) -> Left:
        """What is not decided yet; reads the table, so ask when a claim came back exhausted."""
        ...

    def counts(self) -> dict[State, int]:
        """How many rows are in each state: a full count."""
        ...

    def holdings(self) -> list[Holding]:
        """Who holds how much; cheap."""
        ...

    def key_of(self, texts: Sequence[str]) -> Key:
        """A key as somebody types it; `ConfigError` when it does not fit the columns."""
        ...

    def show(self, key: Key) -> Standing | None:
        """One record, None when there is no such row."""
        ...

    def sample(self, size: int) -> tuple[Record, ...]:
        """Random PENDING rows, claimed by nobody: for a canary that only looks."""
        ...

    def forget_connections(self) -> None:
        """Drop inherited connections without closing them: called in the child after a fork."""
        ...

    def close(self) -> None:
        """Close the connections; the table may be used again and opens new ones."""
        ...
