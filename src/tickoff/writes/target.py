"""What rows are written to: the table, the names its columns go by, and a key that is really unique."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ..errors import ConfigError
from ..names import has_control_characters
from .sessions import is_mapper

if TYPE_CHECKING:
    from sqlalchemy.orm import Mapper


@dataclass(frozen=True, slots=True)
class Target:
    """A table, its columns by the names that rows use, and the names that make the key."""

    table: sa.Table
    columns: Mapping[str, sa.Column[Any]]
    key: tuple[str, ...]
    rivals: bool
    """Whether another unique key than ours can be hit; only MySQL needs to know."""
    counts_from_zero: bool
    """Whether the database takes a 0 in the key for "the next number", as MySQL does."""


def target_of(connection: sa.Connection, table: object, key: str | tuple[str, ...]) -> Target:
    """The target, checked: unknown tables, unknown key columns and keys that are not unique are refused."""
    found, columns = _table(connection, table)
    names = _key_names(key)
    unknown = [name for name in names if name not in columns]
    if unknown or not names:
        raise ConfigError(
            f"key={key!r} names no column of {found.fullname}; its columns are {', '.join(columns)}"
        )
    wanted = {columns[name].name for name in names}
    unique = _unique_keys(connection, found, wanted)
    if wanted not in unique:
        raise ConfigError(
            f"key={key!r} is not unique in {found.fullname}, so a repeated import would add its rows again; "
            f"add a unique index on ({', '.join(sorted(wanted))}), or use another key"
        )
    return Target(
        found,
        columns,
        names,
        rivals=any(one != wanted for one in unique),
        counts_from_zero=len(names) == 1 and _counts_from_zero(connection, columns[names[0]]),
    )


def _key_names(key: object) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f'key={key!r:.60} names no column; write "id" or ("country", "id")')
    return tuple(names)


def _counts_from_zero(connection: sa.Connection, column: sa.Column[Any]) -> bool:
    on_mysql = connection.dialect.name in {"mysql", "mariadb"}
    return on_mysql and column.table.autoincrement_column is column


def _table(connection: sa.Connection, table: object) -> tuple[sa.Table, Mapping[str, sa.Column[Any]]]:
    if isinstance(table, str):
        table = _reflected(connection, table)
    if isinstance(table, sa.Table):
        return table, dict(table.columns.items())
    mapper = sa.inspect(table, raiseerr=False)
    if not is_mapper(mapper):
        raise ConfigError(
            f"table={table!r} is no table; pass its name, an SQLAlchemy Table or a mapped class"
        )
    if not isinstance(mapper.local_table, sa.Table) or len(mapper.tables) != 1:
        raise ConfigError(
            f"table={mapper.class_.__name__} is mapped to several tables; pass one Table at a time"
        )
    return mapper.local_table, _attributes(mapper)


def _attributes(mapper: Mapper[Any]) -> Mapping[str, sa.Column[Any]]:
    found = {one.key: one.columns[0] for one in mapper.column_attrs}
    return {name: column for name, column in found.items() if isinstance(column, sa.Column)}


def _reflected(connection: sa.Connection, name: str) -> sa.Table:
    """The table as the database has it; `schema.name` is understood."""
    if not name or has_control_characters(name):
        raise _missing(name)
    schema, _, plain = name.rpartition(".")
    try:
        return sa.Table(
            plain, sa.MetaData(), schema=schema or None, autoload_with=connection, resolve_fks=False
        )
    except sa.exc.NoSuchTableError as error:
        raise _missing(name) from error
    except sa.exc.DBAPIError as error:  # no such schema, as some databases have it
        if error.connection_invalidated or isinstance(error, sa.exc.InterfaceError):
            raise
        raise _missing(name) from error


def _missing(name: str) -> ConfigError:
    return ConfigError(f"table={name!r} is not in the database; make it first, or correct the name")


def _unique_keys(connection: sa.Connection, table: sa.Table, wanted: set[str]) -> list[set[str]]:
    """The sets of columns that are unique, as declared, else as the database has them."""
    declared = _declared(table)
    if wanted in declared and connection.dialect.name not in {"mysql", "mariadb"}:
        return declared
    return [*declared, *_stored(connection, table)]


def _declared(table: sa.Table) -> list[set[str]]:
    constraints = [
        {column.name for column in one.columns}
        for one in table.constraints
        if isinstance(one, sa.PrimaryKeyConstraint | sa.UniqueConstraint)
    ]
    indexes = [{column.name for column in one.columns} for one in table.indexes if _covers_all(one)]
    return [one for one in [*constraints, *indexes] if one]


def _covers_all(index: sa.Index) -> bool:
    """Whether a unique index holds for every row and for the columns as they are."""
    plain = all(isinstance(one, sa.Column) for one in index.expressions)
    partial = any(index.dialect_options[name].get("where") is not None for name in ("postgresql", "sqlite"))
    return bool(index.unique) and plain and not partial


def _stored(connection: sa.Connection, table: sa.Table) -> list[set[str]]:
    """The same as the database tells it."""
    try:
        copy = sa.Table(
            table.name, sa.MetaData(), schema=table.schema, autoload_with=connection, resolve_fks=False
        )
    except sa.exc.NoSuchTableError as error:
        raise ConfigError(f"table={table.fullname!r} is not in the database; make it first") from error
    return _declared(copy)
