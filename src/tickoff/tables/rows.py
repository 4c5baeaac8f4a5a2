"""Which rows of a shape are meant: by state, by key, by claim; the words all statements are made of."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
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
        return sa.or_(said, status.is_(None)) if status.nullable else said

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
        nullable = [column.is_not(None) for column in self.key if column.nullable]
        return sa.and_(self.shape.where, *nullable)

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

    def above(self, key: Sequence[Any]) -> sa.ColumnElement[bool]:
        """Keys after this one."""
        return self._compared(key, operator.gt)

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

    def among(self, keys: Sequence[Key]) -> sa.ColumnElement[bool]:
        """Exactly these keys."""
        if self.dialect.takes_arrays:
            given = self.given([(f"k{i}", column.type) for i, column in enumerate(self.key)], "among")
            bound = given.params(columns_of(keys, "k"))
            return sa.tuple_(*self.key).in_(bound)
        if len(self.key) == 1:
            return self.key[0].in_([key[0] for key in keys])
        return sa.tuple_(*self.key).in_([tuple(key) for key in keys])

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
        if self.dialect.name != "mysql" or not self.shape.index:
            return ""
        return f"FORCE INDEX ({mysql.dialect().identifier_preparer.quote(self.shape.index)})"

    @property
    def _locked_table(self) -> sa.Table | None:
        return self.shape.table if self.dialect.name == "postgresql" else None

    def _compared(self, key: Sequence[Any], by: Compare) -> sa.ColumnElement[bool]:
        bounds = [self.value(column, value) for column, value in zip(self.key, key, strict=True)]
        if len(bounds) > 1 and self.dialect.name == "mysql":
            return _spelt_out(list(zip(self.key, bounds, strict=True)), by)
        return cast("sa.ColumnElement[bool]", by(_row(self.key), _row(bounds)))


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
