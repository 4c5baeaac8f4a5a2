"""Looking: what is left, how many, who holds what, why a row is where it is. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from .base import Key, Record, State
from .claiming import Claiming
from .ledger import SUSPECT, Kind, ledger
from .rows import Rows
from .seen import Holding, Left, Standing

_HELD = (Kind.CLAIM.value, Kind.TORN.value)


class Looking:
    """The questions to one shape."""

    def __init__(self, rows: Rows, claiming: Claiming) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect
        self._claiming = claiming

    def left(self, connection: sa.Connection) -> Left:
        """Whether anything is PENDING or IN_FLIGHT, and when the first of it can go on."""
        in_flight = self._shape.status == State.IN_FLIGHT.value
        soonest = sa.func.min(self._dialect.seconds_until(self._when(in_flight)))
        pending = sa.func.max(sa.case((self._rows.pending, 1), else_=0))
        flying = sa.func.max(sa.case((in_flight, 1), else_=0))
        open_ = sa.or_(self._rows.pending, in_flight)
        query = self._rows.everything(pending, flying, soonest).where(open_)
        some_pending, some_flying, wake = connection.execute(query).one()
        seconds = None if wake is None else max(0.0, float(wake))
        return Left(bool(some_pending), bool(some_flying), seconds)

    def counts(self, connection: sa.Connection) -> dict[State, int]:
        """Rows by state."""
        state = (
            sa.func.coalesce(self._shape.status, State.PENDING.value)
            if self._rows.may_be_unsaid
            else self._shape.status
        )
        query = self._rows.everything(state, sa.func.count()).group_by(state)
        rows = connection.execute(query).all()
        found: dict[str, int] = {row[0]: row[1] for row in rows}
        return {known: found.get(known.value, 0) for known in State}

    def holdings(self, connection: sa.Connection) -> list[Holding]:
        """The claims in the ledger by server."""
        mine = (ledger.c.record == self._shape.record) & ledger.c.kind.in_(_HELD)
        totals = (sa.func.count(), sa.func.sum(ledger.c.size), sa.func.min(ledger.c.until))
        query = sa.select(ledger.c.owner, *totals).where(mine).group_by(ledger.c.owner)
        rows = connection.execute(query.order_by(ledger.c.owner))
        return [Holding(owner, claims, int(size), aware(until)) for owner, claims, size, until in rows]

    def show(self, connection: sa.Connection, key: Key) -> Standing | None:
        """A row, its tracking columns, and who holds it."""
        shape = self._shape
        held = sa.and_(ledger.c.record == shape.record, ledger.c.token == shape.claim)
        holder = sa.select(ledger.c.owner).where(held).scalar_subquery()
        answers = [shape.table.c[name].label(f"result {name}") for name in shape.plan.result]
        tracked = [shape.status, shape.until, shape.claim, shape.error, holder, self._rows.changed, *answers]
        home = shape.users.outerjoin(shape.table, self._rows.together) if shape.apart else shape.table
        query = (
            sa.select(*self._claiming.wanted(shape.users), *tracked).select_from(home).where(*self._is(key))
        )
        found = connection.execute(query).first()
        if found is None:
            return None
        (record,) = self._claiming.records([tuple(found[: -len(tracked)])])
        return _standing(record, found[-len(tracked) :], shape.plan.result)

    def sample(self, connection: sa.Connection, size: int) -> tuple[Record, ...]:
        """PENDING rows at random."""
        query = self._rows.everything(*self._claiming.wanted(self._rows.meant)).where(self._rows.pending)
        rows = connection.execute(query.order_by(self._random).limit(size)).all()
        return tuple(self._claiming.records([tuple(row) for row in rows]))

    def changed(self, connection: sa.Connection) -> int:
        """How many DONE records have another row by now."""
        done = self._shape.status == State.DONE.value
        query = sa.select(sa.func.count()).select_from(self._shape.table)
        return connection.execute(query.where(done, self._rows.users_row(self._rows.changed))).scalar_one()

    @property
    def _random(self) -> sa.ColumnElement[Any]:
        return sa.func.rand() if self._dialect.name == "mysql" else sa.func.random()

    def _when(self, in_flight: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
        """When a row can go on: its not-before, or the end of its claim, which the ledger knows best."""
        held = sa.and_(ledger.c.record == self._shape.record, ledger.c.kind.in_(_HELD))
        end = sa.select(sa.func.min(ledger.c.until)).where(held).scalar_subquery()
        own = sa.func.coalesce(self._shape.until, self._dialect.now)
        return sa.case((in_flight, sa.func.coalesce(end, own)), else_=own)

    def _is(self, key: Key) -> Sequence[sa.ColumnElement[bool]]:
        pairs = zip(self._shape.users_key, key, strict=True)
        return [column == self._rows.value(column, value) for column, value in pairs]


def _standing(record: Record, tracked: Sequence[Any], results: Sequence[str]) -> Standing:
    state, until, claim, error, owner, changed, *answers = tracked
    state = State.PENDING.value if state is None else state
    return Standing(
        key=record.key,
        row=record.row,
        state=state,
        attempts=record.attempts,
        error=error,
        until=None if until is None else aware(until),
        claim=None if claim == SUSPECT else claim,
        suspect=claim == SUSPECT,
        owner=owner if state == State.IN_FLIGHT else None,
        answer=dict(zip(results, answers, strict=True)),
        changed=bool(changed) and state == State.DONE,
    )


def aware(moment: datetime) -> datetime:
    """An instant as the database keeps it, in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
