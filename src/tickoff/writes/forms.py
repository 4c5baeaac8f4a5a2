"""The statement of an upsert in the form that is fastest per engine, compiled once for all batches.

By rows: one row's statement, which the driver repeats in its own bulk way (SQLite steps a prepared
statement, PyMySQL joins rows into one statement, psycopg sends a pipeline). By columns: PostgreSQL takes
an array per column, with one statement to plan for a thousand rows. Values go through SQLAlchemy's types
in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from .batches import Batch
from .target import Target

Process = Callable[[Any], Any]
Processes = Callable[[Sequence[Any]], list[Any]]

_NAMED = re.compile(r"%\((c\d+)\)s")
"""A parameter as PyMySQL and psycopg have it named."""


class Form:
    """How batches of certain columns are written to a target."""

    def __init__(self, target: Target, names: Sequence[str], dialect: sa.Dialect) -> None:
        self._target = target
        self._dialect = dialect
        given = [target.columns[name] for name in names]
        self._defaults = _defaults(target, given)
        self._columns = [*given, *self._defaults]
        self._processes = _processes(self._columns, dialect)
        self._updated = [column for name, column in zip(names, given, strict=True) if name not in target.key]
        self._by_columns = self._compiled_by_columns()
        binds = _binds(self._columns)
        self._by_rows = _Text(self._insert().values(binds), [str(one.key) for one in binds.values()], dialect)

    def write(self, connection: sa.Connection, batch: Batch) -> None:
        """Write one batch."""
        values = self._bound(batch)
        if self._by_columns and not any(_mixed(column) for column in values):
            connection.exec_driver_sql(self._by_columns.text, self._by_columns.all(values))
        else:
            connection.exec_driver_sql(self._by_rows.text, self._by_rows.each(values))

    def _bound(self, batch: Batch) -> list[Sequence[Any]]:
        """The values by column, as the driver takes them."""
        values: list[Sequence[Any]] = list(batch)
        values += [[_default_of(column) for _ in batch[0]] for column in self._defaults]
        for place, process in self._processes:
            values[place] = process(values[place])
        return values

    def _compiled_by_columns(self) -> _Text | None:
        if self._dialect.name != "postgresql" or _has_sql_default(self._target, self._columns):
            return None
        types = [_element(column.type, self._dialect) for column in self._columns]
        if None in types:
            return None
        arrays = [sa.bindparam(f"c{n}", type_=postgresql.ARRAY(one)) for n, one in enumerate(types)]
        names = [f"c{n}" for n in range(len(types))]
        unnested = sa.func.unnest(*arrays).table_valued(*names, name="new").render_derived()
        source = sa.select(*(unnested.c[name] for name in names))
        insert = postgresql.insert(self._target.table)
        chosen = insert.from_select([c.name for c in self._columns], source, include_defaults=False)
        return _Text(self._on_conflict(chosen), names, self._dialect)

    def _insert(self) -> Any:
        match self._dialect.name:
            case "postgresql":
                return self._on_conflict(postgresql.insert(self._target.table))
            case "sqlite":
                return self._on_conflict(sqlite.insert(self._target.table))
            case _:
                return self._on_duplicate_key(mysql.insert(self._target.table))

    def _on_conflict(self, insert: Any) -> Any:
        key = [self._target.columns[name] for name in self._target.key]
        if not self._updated:
            return insert.on_conflict_do_nothing(index_elements=key)
        new = {column.name: insert.excluded[column.key] for column in self._updated}
        differs = _differs_on_postgres if self._dialect.name == "postgresql" else _differs_on_sqlite
        changed = differs(self._updated, list(new.values()))
        return insert.on_conflict_do_update(index_elements=key, set_=new, where=changed)

    def _on_duplicate_key(self, insert: Any) -> Any:
        """MySQL leaves unchanged rows alone by itself, but it answers to any unique key, not only to ours."""
        new = {column.name: _new(column) for column in self._updated}
        key = [self._target.columns[name] for name in self._target.key]
        if self._target.rivals or not new:
            new = {key[0].name: _same_or_fail(key), **new}
        return insert.on_duplicate_key_update(list(new.items()))


class _Text:
    """A statement as the driver takes it, its parameters by position however the driver marks them."""

    def __init__(self, statement: Any, names: Sequence[str], dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        order = compiled.positiontup if compiled.positional else _NAMED.findall(self.text)
        if not compiled.positional:  # a tuple a row costs the driver less than a dict
            self.text = _NAMED.sub("%s", self.text)
        self._order = [names.index(name) for name in order]

    def each(self, values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Parameters for a statement that takes one row: a set per row."""
        return list(zip(*(values[place] for place in self._order), strict=True))

    def all(self, values: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
        """Parameters for a statement that takes all rows: a list per column."""
        return tuple(list(values[place]) for place in self._order)


class _Record(sa.types.UserDefinedType[Any]):
    """PostgreSQL's type of a row of anything."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        """Its name."""
        return "record"


def _differs_on_postgres(old: Sequence[Any], new: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Whether any byte differs: also of types that know no equality (json) or a blind one (citext)."""
    record = _Record()
    before, after = sa.cast(sa.func.row(*old), record), sa.cast(sa.func.row(*new), record)
    return before.bool_op("OPERATOR(pg_catalog.*<>)")(after)


def _differs_on_sqlite(old: Sequence[Any], new: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Whether any value differs, texts byte by byte whatever the column's collation."""
    pairs = zip(old, new, strict=True)
    return sa.or_(*(_binary(one).is_distinct_from(_binary(other)) for one, other in pairs))


def _binary(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.collate(column, "BINARY") if isinstance(column.type, sa.String) else column


def _new(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The value that would have been inserted, in the form that every MySQL and MariaDB has."""
    return sa.func.VALUES(column, type_=column.type)


def _same_or_fail(key: Sequence[sa.Column[Any]]) -> sa.ColumnElement[Any]:
    """The key as it is, if it is the row's own; an error, if another unique key has hit another row.

    MySQL cannot raise errors in an expression, so exp() is made to run over.
    """
    first = key[0]
    same = sa.and_(*(column.is_not_distinct_from(_new(column)) for column in key))
    overflow = sa.func.exp(
        sa.func.coalesce(sa.func.length(first), sa.literal_column("0")) + sa.literal_column("1000")
    )
    return sa.case((sa.or_(same, overflow), first))


def _binds(columns: Sequence[sa.Column[Any]]) -> dict[sa.Column[Any], sa.BindParameter[Any]]:
    return {column: sa.bindparam(f"c{n}", type_=column.type) for n, column in enumerate(columns)}


def _defaults(target: Target, given: Sequence[sa.Column[Any]]) -> list[sa.Column[Any]]:
    """The columns that rows leave out and Python fills in for a new row."""
    rest = [column for column in target.table.columns if column not in set(given)]
    return [c for c in rest if c.default is not None and (c.default.is_scalar or c.default.is_callable)]


def _default_of(column: sa.Column[Any]) -> Any:
    default: Any = column.default
    return default.arg(None) if default.is_callable else default.arg


def _has_sql_default(target: Target, written: Sequence[sa.Column[Any]]) -> bool:
    """Whether SQLAlchemy fills in a column by an SQL expression."""
    rest = [column for column in target.table.columns if column not in set(written)]
    return any(column.default is not None for column in rest)


def _processes(columns: Sequence[sa.Column[Any]], dialect: sa.Dialect) -> list[tuple[int, Processes]]:
    found = [column.type.dialect_impl(dialect).bind_processor(dialect) for column in columns]
    return [(place, _of_many(process)) for place, process in enumerate(found) if process is not None]


def _of_many(process: Process) -> Processes:
    """The same for a whole column; on SQLite, making text of instants was a third of an upsert."""

    def plainly(values: Sequence[Any]) -> list[Any]:
        return list(map(process, values))

    def quickly(values: Sequence[Any]) -> list[Any]:
        if set(map(type, values)) != {datetime} or any(value.tzinfo for value in values):
            return plainly(values)
        return [value.isoformat(" ", "microseconds") for value in values]

    try:
        same = plainly([_SOME_INSTANT]) == quickly([_SOME_INSTANT])
    except Exception:  # noqa: BLE001 - it is not for instants
        return plainly
    return quickly if same else plainly


_SOME_INSTANT = datetime(2001, 2, 3, 4, 5, 6, 7)  # noqa: DTZ001 - as databases without zones have it

_ELEMENTS = (
    *(sa.Integer, sa.Float, sa.Boolean, sa.Uuid, sa.LargeBinary, sa.JSON),
    *(sa.Date, sa.DateTime, sa.Time, sa.Interval),
)


def _element(kind: Any, dialect: sa.Dialect) -> Any:
    """The type of an array's element for a column, None where an array will not do.

    Without length and precision: a cast would cut off what an insert refuses.
    """
    own = kind.dialect_impl(dialect)
    if isinstance(kind, sa.types.TypeDecorator) or isinstance(own, sa.ARRAY):
        return None
    if isinstance(own, sa.Enum):
        return own if getattr(own, "native_enum", False) else sa.Text()
    if isinstance(own, sa.String):
        return sa.Text()
    if isinstance(own, sa.Float) or not isinstance(own, sa.Numeric):
        return own if isinstance(own, _ELEMENTS) else None
    return sa.Numeric()


def _mixed(values: Sequence[Any]) -> bool:
    """Whether there is more than one type among them: no driver makes an array of those."""
    return len({type(value) for value in values} - {type(None)}) > 1
