"""Records in a user's table of a SQL database: the steps of the protocol, each a short transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TypeVar

import sqlalchemy as sa

from ..errors import ConfigError
from ..stores.sql.engines import EngineSource
from ..stores.sql.store import in_one_line
from .base import Batch, Key, News, Plan, Record, Settled, State, Swept, Verdict
from .beside import ClaimingBeside
from .claiming import Claiming
from .database import Database
from .installing import Installing, ddl
from .keys import typed
from .ledger import Kind, ledger
from .looking import Looking
from .notes import Notes
from .passes import Passes
from .reopening import Reopening
from .rows import Rows
from .seen import Holding, Left, Standing
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
        self._finding = threading.Lock()

    @property
    def address(self) -> str:
        """Where the table is, without the password."""
        return f"{self._database.address} {self.plan.table}"

    def check(self) -> None:
        """Look at the table anew, and refuse it unless it is as it must be."""
        self._found = self._look()

    def install(self) -> list[str]:
        """Add what is missing."""
        self._found = None
        return Installing(self._database, self.plan).install()

    def ddl(self) -> list[str]:
        """The statements for a table that has nothing yet."""
        if self.plan.companion is not None:
            return Installing(self._database, self.plan).ddl()
        return ddl(self.plan, self._database.address.partition("://")[0]).split(";\n\n")[:-1]

    def uninstall(self, *, states: bool = False) -> list[str]:
        """Put records in flight back, and take the tracking columns away."""
        self._found = None
        statements = Installing(self._database, self.plan).uninstall(states=states)
        self._database.close()  # after a DROP, psycopg has a session forget what was prepared in it
        return statements

    def claim(self, token: str, owner: str, limit: int, ttl: float, floor: Key | None = None) -> Batch:
        """Claim the next PENDING rows above the floor."""
        return self._steps.claiming.claim(token, owner, limit, ttl, floor)

    def claim_suspect(self, token: str, owner: str, ttl: float) -> Batch:
        """Claim one suspect, alone."""
        return self._steps.claiming.claim_suspect(token, owner, ttl)

    def claim_these(self, token: str, owner: str, keys: Sequence[Key], ttl: float) -> Batch:
        """Claim the rows of these keys, as far as they can be claimed."""
        return self._steps.claiming.claim_these(token, owner, keys, ttl)

    def statements(self) -> list[str]:
        """The SQL of a claim, for people to read."""
        return [self._steps.claiming.text]

    def settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool = False) -> Settled:
        """Write verdicts; an answer the database refuses is found by halving, the others are written."""
        if verdicts:
            return self._settle(token, verdicts, last=last)
        if last:
            self._steps.settling.close(token)
        return Settled()

    def renew(self, tokens: Sequence[str], ttl: float) -> frozenset[str]:
        """Prolong claims: one small row each."""
        if not tokens:
            return frozenset()
        record = self._steps.record
        return self._write(lambda connection: self._renew(connection, record, tokens, ttl))

    def give_back(self, token: str, keys: Sequence[Key] | None = None, *, last: bool = False) -> int:
        """Make records that were not started PENDING as they were before."""
        give_back = self._steps.sweeping.give_back
        return self._write(partial(give_back, token=token, keys=keys, last=last))

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
        notes = self._steps.notes
        return self._database.read(lambda connection: notes.news(connection, floor, seen))

    def retry(self, error_like: str | None = None) -> int:
        """FAILED → PENDING."""
        reopening = self._steps.reopening
        return self._reopen(reopening, reopening.failed(error_like))

    def reopen(
        self,
        where: str | sa.ColumnElement[bool] | None = None,
        finished_before: datetime | None = None,
        *,
        changed: bool = False,
    ) -> int:
        """DONE → PENDING."""
        before = self._database.dialect.moment(finished_before) if finished_before is not None else None
        reopening = self._steps.reopening
        with _refused(where):
            wanted = reopening.done(condition(where), before, changed=changed)
            self._write(self._steps.passes.begin)
            return self._reopen(reopening, wanted)

    def changed(self) -> int:
        """How many DONE records have another row by now."""
        return self._database.read(self._steps.looking.changed)

    def pass_name(self) -> str:
        """Which pass this is."""
        return self._database.read(self._steps.passes.name)

    def left(self) -> Left:
        """What is not decided yet."""
        return self._database.read(self._steps.looking.left)

    def counts(self) -> dict[State, int]:
        """How many rows are in each state."""
        return self._database.read(self._steps.looking.counts)

    def holdings(self) -> list[Holding]:
        """Who holds how much."""
        return self._database.read(self._steps.looking.holdings)

    def key_of(self, texts: Sequence[str]) -> Key:
        """A key as somebody types it."""
        columns = self._steps.rows.shape.key
        if len(texts) != len(columns):
            names = ", ".join(column.name for column in columns)
            raise ConfigError(f"key: {len(texts)} values were given for {names}; give one for each")
        pairs = zip(texts, columns, strict=True)
        return tuple(typed(text, column.type.python_type) for text, column in pairs)

    def show(self, key: Key) -> Standing | None:
        """One record."""
        looking = self._steps.looking
        return self._database.read(lambda connection: looking.show(connection, key))

    def sample(self, size: int) -> tuple[Record, ...]:
        """Random PENDING rows."""
        looking = self._steps.looking
        return self._database.read(lambda connection: looking.sample(connection, size))

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent."""
        self._database.forget_connections()

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    @property
    def _steps(self) -> _Steps:
        with self._finding:
            if self._found is None:
                self._found = self._look()
            return self._found

    def _look(self) -> _Steps:
        shape = self._database.read(lambda connection: shape_of(connection, self.plan))
        return _Steps(Rows(shape, self._database.dialect), self._database)

    def _write(self, step: Callable[[sa.Connection], T]) -> T:
        return self._database.atomically(step)

    def _settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool) -> Settled:
        try:
            return self._steps.settling.settle(token, verdicts, last=last)
        except REFUSALS as error:
            return self._halves(token, verdicts, error)

    def _halves(self, token: str, verdicts: Sequence[Verdict], error: Exception) -> Settled:
        """The claim stays open: a culprit is still to be settled otherwise."""
        if len(verdicts) == 1:
            cause = getattr(error, "orig", None) or error
            return Settled(culprits={verdicts[0].key: in_one_line(cause)})
        half = len(verdicts) // 2
        first, second = (self._settle(token, part, last=False) for part in (verdicts[:half], verdicts[half:]))
        return first + second

    def _renew(
        self, connection: sa.Connection, record: str, tokens: Sequence[str], ttl: float
    ) -> frozenset[str]:
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

    def _reopen(self, reopening: Reopening, conditions: Sequence[sa.ColumnElement[bool]]) -> int:
        floor: Key | None = None
        total = 0
        while True:
            keys = self._write(partial(reopening.some, conditions=conditions, floor=floor))
            if not keys:
                return total
            total, floor = total + len(keys), keys[-1]


@dataclass(frozen=True)
class _Steps:
    """The statements for a table as it was found."""

    rows: Rows
    database: Database

    @property
    def record(self) -> str:
        return self.rows.shape.record

    @cached_property
    def claiming(self) -> Claiming:
        return (ClaimingBeside if self.rows.shape.apart else Claiming)(self.rows, self.database)

    @cached_property
    def settling(self) -> Settling:
        return Settling(self.rows, self.database)

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
    def passes(self) -> Passes:
        return Passes(self.rows)

    @cached_property
    def looking(self) -> Looking:
        return Looking(self.rows, self.claiming)


@contextmanager
def _refused(where: object) -> Iterator[None]:
    """The database's refusal of a user's condition, in words that name it."""
    try:
        yield
    except sa.exc.StatementError as error:
        said = in_one_line(error.orig or error)
        raise ConfigError(f"where={where!r:.80} is refused by the database: {said}; mend it") from error
