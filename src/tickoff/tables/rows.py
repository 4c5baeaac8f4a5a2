"""Which rows of a shape are meant: by state, by key, by claim; the words all statements are made of."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from .base import Key, State
from .dialects import Dialect
from .ledger import SUSPECT
from .shape import Shape

Compare = Callable[[Any, Any], Any]

Columns = list[Sequence[Any]]
"""What is given for some rows, column by column, all of one length."""

_ONE: sa.ColumnElement[int] = sa.literal_column("1")

CHUNK = 500
"""Keys that go into one statement where each is a parameter of its own."""


class Rows:
    """Conditions on the rows of one shape in one dialect."""

    def __init__(self, shape: Shape, dialect: Dialect) -> None:
        self.shape = shape
        self.dialect = dialect
        self.key = list(shape.key)

    @property
    def pending(self) -> sa.ColumnElement[bool]:
        """PENDING; in a column of the user's own, a row that says nothing yet is PENDING too."""
        status = self.shape.status
        said = status == State.PENDING.value
        return sa.or_(said, status.is_(None)) if self.may_be_unsaid else said

    @property
    def may_be_unsaid(self) -> bool:
        """Whether a row may have no state yet; it is PENDING then."""
        return bool(self.shape.status.nullable) or self.shape.apart

    @property
    def ready(self) -> sa.ColumnElement[bool]:
        """Not held back by a not-before."""
        until = self.shape.until
        return sa.or_(until.is_(None), until <= self.dialect.now)

    @property
    def suspect(self) -> sa.ColumnElement[bool]:
        """To be claimed alone."""
        return self.shape.claim == SUSPECT

    @property
    def unsuspected(self) -> sa.ColumnElement[bool]:
        """To be claimed in batches."""
        return sa.or_(self.shape.claim.is_(None), self.shape.claim != SUSPECT)

    @property
    def record(self) -> sa.ColumnElement[bool]:
        """A row that is meant by the plan, with a key."""
        return self.users_row(self.of_users)

    @property
    def of_users(self) -> sa.ColumnElement[bool]:
        """The same, as a condition on the user's table."""
        nullable = [column.is_not(None) for column in self.shape.users_key if column.nullable]
        return sa.and_(self.shape.where, *nullable)

    def users_row(self, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        """The user's row is there and meets a condition.

        Beside a companion each row is looked up by its key: a scalar is, where a database makes of EXISTS
        a join that walks the user's table.
        """
        if not self.shape.apart:
            return condition
        there: sa.ColumnElement[bool] = self.in_users(_ONE, condition) == _ONE
        return there

    def in_users(self, value: sa.ColumnElement[Any], *conditions: sa.ColumnElement[bool]) -> Any:
        """A value of the user's row that belongs to a row of the companion."""
        found = sa.select(value).select_from(self.shape.users).where(self.together, *conditions)
        return found.correlate(self.shape.table).scalar_subquery()

    @property
    def together(self) -> sa.ColumnElement[bool]:
        """A row of the user's and one of the companion belong together."""
        pairs = zip(self.shape.users_key, self.shape.key, strict=True)
        return sa.and_(*(users == ours for users, ours in pairs))

    @property
    def fingerprint(self) -> sa.ColumnElement[Any]:
        """What the user's function sees of a row, but for its key, in a few signs."""
        shape = self.shape
        return self.dialect.fingerprint([c for c in shape.columns if c not in set(shape.users_key)])

    @property
    def changed(self) -> sa.ColumnElement[bool]:
        """The user's row is another than when it was claimed; where that keeps its state, nothing tells."""
        if self.shape.fingerprint is None:
            return sa.false()
        return self.shape.fingerprint != self.fingerprint

    def everything(self, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        """All records, those included that have no state yet; the user's columns are those of `meant`."""
        if not self.shape.apart:
            return sa.select(*columns).select_from(self.shape.table).where(self.record)
        meant = self.meant
        same = [meant.c[column.name] == column for column in self.shape.key]
        return sa.select(*columns).select_from(meant.outerjoin(self.shape.table, sa.and_(*same)))

    @cached_property
    def meant(self) -> sa.FromClause:
        """The user's rows that are records."""
        if not self.shape.apart:
            return self.shape.users
        columns = dict.fromkeys([*self.shape.users_key, *self.shape.columns])
        return sa.select(*columns).where(self.of_users).subquery("meant")

    def ours(self, token: Any) -> sa.ColumnElement[bool]:
        """In flight under this token: the guard of every verdict."""
        return sa.and_(self.shape.status == State.IN_FLIGHT.value, self.shape.claim == token)

    def value(self, column: sa.Column[Any], value: Any) -> sa.ColumnElement[Any]:
        """A value of a key column; PostgreSQL uses its index only for the very type."""
        bound = value if isinstance(value, sa.ColumnElement) else sa.literal(value, column.type)
        return sa.cast(bound, column.type) if self.dialect.name == "postgresql" else bound

    def values(self, prefix: str) -> list[sa.BindParameter[Any]]:
        """Parameters for the values of a key, numbered."""
        return [sa.bindparam(f"{prefix}_{i}", type_=column.type) for i, column in enumerate(self.key)]

    def above(self, key: Sequence[Any], *, users: bool = False) -> sa.ColumnElement[bool]:
        """Keys after this one, in the user's table or where states are kept."""
        return self._compared(key, operator.gt, self.shape.users_key if users else self.key)

    def below(self, key: Sequence[Any]) -> sa.ColumnElement[bool]:
        """Keys before this one."""
        return self._compared(key, operator.lt)

    def within(self, low: Key, high: Key) -> sa.ColumnElement[bool]:
        """Keys from this one to that one, both included."""
        return sa.and_(self._compared(low, operator.ge), self._compared(high, operator.le))

    def spanned(self, span: Sequence[Key]) -> sa.ColumnElement[bool]:
        """Keys from the lowest to the highest of a claim, as the ledger has them; PostgreSQL's are texts."""
        if self.dialect.takes_arrays:
            low, high = ([self._text(c, v) for c, v in zip(self.key, key, strict=True)] for key in span)
            return self.within(tuple(low), tuple(high))
        return self.within(span[0], span[-1])

    def _text(self, column: sa.Column[Any], text: str) -> sa.ColumnElement[Any]:
        return sa.cast(sa.literal(text, sa.Text), column.type)

    def among(self, keys: Sequence[Key], *, users: bool = False) -> sa.ColumnElement[bool]:
        """Exactly these keys, in the user's table or where states are kept."""
        columns = self.shape.users_key if users else self.key
        if self.dialect.takes_arrays:
            given = self.given([(f"k{i}", column.type) for i, column in enumerate(columns)], "among")
            bound = given.params(columns_of(keys, "k"))
            return sa.tuple_(*columns).in_(bound)
        if len(columns) == 1:
            return columns[0].in_([key[0] for key in keys])
        return sa.tuple_(*columns).in_([tuple(key) for key in keys])

    def given(self, columns: Sequence[tuple[str, Any]], name: str) -> sa.Select[Any]:
        """Arrays in the parameters of these names, as rows."""
        arrays = [sa.bindparam(column, type_=postgresql.ARRAY(kind)) for column, kind in columns]
        fields = [sa.column(column, kind) for column, kind in columns]
        return sa.select(sa.func.unnest(*arrays).table_valued(*fields, name=name).render_derived())

    def locked(self, select: sa.Select[Any], *, wait: bool = False) -> sa.Select[Any]:
        """In key order, locking row by row; what others hold locked is passed over."""
        ordered = select.order_by(*self.key)
        if self.hint:
            ordered = ordered.with_hint(self.shape.table, self.hint, "*")
        if not self.dialect.locks_rows:
            return ordered
        return ordered.with_for_update(of=self._locked_table, skip_locked=not wait)

    def update(self) -> sa.Update:
        """A change of rows by their keys."""
        change = sa.update(self.shape.table)
        return change.with_hint(self.hint, self.shape.table, "*") if self.hint else change

    @property
    def hint(self) -> str:
        """MySQL would scan a small table, and wait for every row that somebody holds locked."""
        return self._forced(self.shape.index)

    @property
    def users_hint(self) -> str:
        """The same for the user's table, where it is walked by its key."""
        return self._forced(self.shape.users_index)

    def _forced(self, index: str | None) -> str:
        if self.dialect.name != "mysql" or not index:
            return ""
        return f"FORCE INDEX ({mysql.dialect().identifier_preparer.quote(index)})"

    @property
    def _locked_table(self) -> sa.Table | None:
        return self.shape.table if self.dialect.name == "postgresql" else None

    def _compared(
        self, key: Sequence[Any], by: Compare, columns: Sequence[sa.Column[Any]] = ()
    ) -> sa.ColumnElement[bool]:
        compared = columns or self.key
        bounds = [self.value(column, value) for column, value in zip(compared, key, strict=True)]
        if len(bounds) > 1 and self.dialect.name == "mysql":
            return _spelt_out(list(zip(compared, bounds, strict=True)), by)
        return cast("sa.ColumnElement[bool]", by(_row(compared), _row(bounds)))


def _row(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else sa.tuple_(*parts)


def _spelt_out(pairs: Sequence[tuple[Any, Any]], by: Compare) -> sa.ColumnElement[bool]:
    """(a, b) > (x, y) for MySQL and MariaDB, which use no index for rows: a > x, or a = x and b > y."""
    (column, bound), *rest = pairs
    if not rest:
        return cast("sa.ColumnElement[bool]", by(column, bound))
    strict = {operator.ge: operator.gt, operator.le: operator.lt}.get(by, by)
    return sa.or_(strict(column, bound), sa.and_(column == bound, _spelt_out(rest, by)))


def columns_of(keys: Sequence[Sequence[Any]], prefix: str) -> dict[str, list[Any]]:
    """Rows as columns, their names numbered."""
    return {f"{prefix}{i}": list(values) for i, values in enumerate(zip(*keys, strict=True))}


def chunks(keys: Sequence[Any], size: int = CHUNK) -> list[Sequence[Any]]:
    """Pieces of at most so many."""
    return [keys[i : i + size] for i in range(0, len(keys), size)]


def named(values: Sequence[Any], prefix: str) -> dict[str, Any]:
    """The values of a key, for the parameters of `Rows.values`."""
    return {f"{prefix}_{i}": value for i, value in enumerate(values)}
