"""Records in a user's table of a SQL database: the steps of the protocol, each a short transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TypeVar

import sqlalchemy as sa

from ..stores.sql.engines import EngineSource
from ..stores.sql.store import in_one_line
from .base import Batch, Holding, Key, Left, News, Plan, Record, Settled, Standing, State, Swept, Verdict
from .claiming import Claiming
from .database import Database
from .installing import Installing
from .ledger import Kind, ledger
from .looking import Looking
from .notes import Notes
from .reopening import Reopening
from .rows import Rows
from .settling import Settling
from .shape import condition, shape_of
from .sweeping import Sweeping
from .trouble import REFUSALS

T = TypeVar("T")


class SqlRecordTable:
    """A `RecordTable` over SQLAlchemy Core."""

    def __init__(self, source: EngineSource, plan: Plan, limit: float) -> None:
        self.plan = plan
        self._database = Database(source, limit)
        self._found: _Steps | None = None

    @property
    def address(self) -> str:
        """Where the table is, without the password."""
        return f"{self._database.address} {self.plan.table}"

    def check(self) -> None:
        """Look at the table anew, and refuse it unless it is as it must be."""
        shape = self._database.read(lambda connection: shape_of(connection, self.plan))
        self._found = _Steps(Rows(shape, self._database.dialect))

    def install(self) -> list[str]:
        """Add what is missing."""
        self._found = None
        return Installing(self._database, self.plan).install()

    def uninstall(self, *, states: bool = False) -> list[str]:
        """Put records in flight back, and take the tracking columns away."""
        self._found = None
        return Installing(self._database, self.plan).uninstall(states=states)

    def claim(self, token: str, owner: str, limit: int, ttl: float, floor: Key | None = None) -> Batch:
        """Claim the next PENDING rows above the floor."""
        claiming = self._steps.claiming
        return self._write(lambda connection: claiming.claim(connection, token, owner, limit, ttl, floor))

    def claim_suspect(self, token: str, owner: str, ttl: float) -> Batch:
        """Claim one suspect, alone."""
        claiming = self._steps.claiming
        return self._write(lambda connection: claiming.claim_suspect(connection, token, owner, ttl))

    def settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool = False) -> Settled:
        """Write verdicts; an answer the database refuses is found by halving, the others are written."""
        settled = self._settle_all(token, verdicts) if verdicts else Settled()
        if last and not settled.busy and not settled.culprits:
            self._write(lambda connection: self._steps.settling.close(connection, token))
        return settled

    def renew(self, tokens: Sequence[str], ttl: float) -> frozenset[str]:
        """Prolong claims: one small row each."""
        return self._write(lambda connection: self._renew(connection, tokens, ttl)) if tokens else frozenset()

    def give_back(self, token: str, keys: Sequence[Key] | None = None, *, last: bool = False) -> int:
        """Make records that were not started PENDING as they were before."""

        def step(connection: sa.Connection) -> int:
            given = self._steps.sweeping.give_back(connection, token, keys)
            if last:
                self._steps.settling.close(connection, token)
            return given

        return self._write(step)

    def sweep(self, attempts: int, wait: float = 0.0, *, deep: bool = False) -> Swept:
        """Put back what claims that ran out have left, a transaction for each."""
        sweeping = self._steps.sweeping
        total = self._sweep_strays() if deep else Swept()
        for token in self._database.read(sweeping.expired):
            total += self._write(partial(sweeping.sweep, token=token, attempts=attempts, wait=wait))
        self._write(sweeping.prune)
        return total

    def news(self, floor: Key | None, seen: frozenset[str] = frozenset()) -> News:
        """What happened behind the floor."""
        return self._database.read(lambda connection: self._steps.notes.news(connection, floor, seen))

    def retry(self, error_like: str | None = None) -> int:
        """FAILED → PENDING."""
        return self._reopen(self._steps.reopening.failed(error_like))

    def reopen(
        self, where: str | sa.ColumnElement[bool] | None = None, finished_before: datetime | None = None
    ) -> int:
        """DONE → PENDING."""
        before = self._database.dialect.moment(finished_before) if finished_before is not None else None
        return self._reopen(self._steps.reopening.done(condition(where), before))

    def left(self) -> Left:
        """What is not decided yet."""
        return self._database.read(self._steps.looking.left)

    def counts(self) -> dict[State, int]:
        """How many rows are in each state."""
        return self._database.read(self._steps.looking.counts)

    def holdings(self) -> list[Holding]:
        """Who holds how much."""
        return self._database.read(self._steps.looking.holdings)

    def show(self, key: Key) -> Standing | None:
        """One record."""
        return self._database.read(lambda connection: self._steps.looking.show(connection, key))

    def sample(self, size: int) -> tuple[Record, ...]:
        """Random PENDING rows."""
        return self._database.read(lambda connection: self._steps.looking.sample(connection, size))

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent."""
        self._database.forget_connections()

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    @property
    def _steps(self) -> _Steps:
        if self._found is None:
            self.check()
        assert self._found is not None  # noqa: S101 - for the type checker
        return self._found

    def _write(self, step: Callable[[sa.Connection], T]) -> T:
        return self._database.atomically(step)

    def _settle_all(self, token: str, verdicts: Sequence[Verdict]) -> Settled:
        try:
            return self._write(lambda connection: self._steps.settling.settle(connection, token, verdicts))
        except REFUSALS as error:
            if len(verdicts) == 1:
                cause = getattr(error, "orig", None) or error
                return Settled(culprits={verdicts[0].key: in_one_line(cause)})
            half = len(verdicts) // 2
            return self._settle_all(token, verdicts[:half]) + self._settle_all(token, verdicts[half:])

    def _renew(self, connection: sa.Connection, tokens: Sequence[str], ttl: float) -> frozenset[str]:
        record = self._steps.record
        mine = (ledger.c.record == record) & ledger.c.token.in_(sorted(tokens))
        whole = mine & (ledger.c.kind == Kind.CLAIM.value)
        connection.execute(sa.update(ledger).where(whole).values(until=self._database.dialect.after(ttl)))
        return frozenset(connection.execute(sa.select(ledger.c.token).where(whole)).scalars())

    def _sweep_strays(self) -> Swept:
        floor: Key | None = None
        total = Swept()
        while True:
            swept, floor = self._write(partial(self._steps.sweeping.sweep_stray, floor=floor))
            total += swept
            if floor is None:
                return total

    def _reopen(self, conditions: Sequence[sa.ColumnElement[bool]]) -> int:
        floor: Key | None = None
        total = 0
        while True:
            keys = self._write(partial(self._steps.reopening.some, conditions=conditions, floor=floor))
            if not keys:
                return total
            total, floor = total + len(keys), keys[-1]


@dataclass(frozen=True)
class _Steps:
    """The statements for a table as it was found."""

    rows: Rows

    @property
    def record(self) -> str:
        return self.rows.shape.record

    @cached_property
    def claiming(self) -> Claiming:
        return Claiming(self.rows)

    @cached_property
    def settling(self) -> Settling:
        return Settling(self.rows)

    @cached_property
    def notes(self) -> Notes:
        return Notes(self.rows)

    @cached_property
    def sweeping(self) -> Sweeping:
        return Sweeping(self.rows, self.notes)

    @cached_property
    def reopening(self) -> Reopening:
        return Reopening(self.rows, self.notes)

    @cached_property
    def looking(self) -> Looking:
        return Looking(self.rows, self.claiming)
