"""A user's table as it is in the database, before anything is asked of it: its columns, its unique keys."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..errors import ConfigError
from .base import Plan


@dataclass(frozen=True)
class Found:
    """A user's table before anything is asked of it."""

    name: str
    schema: str | None
    columns: dict[str, dict[str, Any]]
    """As the inspector tells of them."""


def find(inspector: sa.Inspector, plan: Plan) -> Found:
    """The table by its name, or `schema.name`; refused when it is none."""
    found = seek(inspector, plan)
    if found is None:
        raise ConfigError(_missing_table(inspector, plan, *_places(plan)[-1]))
    return found


def seek(inspector: sa.Inspector, plan: Plan) -> Found | None:
    """The same; None where there is nothing of that name."""
    for schema, name in _places(plan):
        if inspector.has_table(name, schema=schema):
            _refuse_view(inspector, plan, schema, name)
            with quietly():
                columns = inspector.get_columns(name, schema=schema)
            return Found(name, schema, {column["name"]: dict(column) for column in columns})
    return None


def _places(plan: Plan) -> list[tuple[str | None, str]]:
    schema, dot, name = plan.table.partition(".")
    return [(None, plan.table), (schema, name)] if dot else [(None, plan.table)]


def key_of(inspector: sa.Inspector, found: Found, plan: Plan) -> tuple[str | None, tuple[str, ...]]:
    """The index that makes the key unique, and the key's columns in its order."""
    candidates = _unique_indexes(inspector, found)
    if not plan.key:
        if not candidates or not candidates[0].primary:
            raise ConfigError(f"key: the table {plan.table} has no primary key; name a unique key with key=")
        return candidates[0].name, candidates[0].columns
    unknown = [name for name in plan.key if name not in found.columns]
    if unknown:
        raise ConfigError(missing_column("key", unknown[0], found, plan))
    fitting = [candidate for candidate in candidates if sorted(candidate.columns) == sorted(plan.key)]
    if not fitting:
        raise ConfigError(
            f"key={listed(plan.key)} has no unique index on {plan.table}, so two rows may share it and no "
            f"claim is quick; run: CREATE UNIQUE INDEX … ON {plan.table} ({', '.join(plan.key)})"
        )
    for name in plan.key:
        if found.columns[name]["nullable"] and not fitting[0].primary:
            raise ConfigError(
                f"key={name} may be NULL in {plan.table}, and such rows cannot be told apart; "
                "make the column NOT NULL, or use another key"
            )
    return fitting[0].name, fitting[0].columns


@dataclass(frozen=True)
class _Unique:
    name: str | None
    columns: tuple[str, ...]
    primary: bool = False


def _unique_indexes(inspector: sa.Inspector, found: Found) -> list[_Unique]:
    """The primary key first; indexes on parts of the rows or of the values make nothing unique."""
    place = (found.name, found.schema)
    primary = inspector.get_pk_constraint(*place)
    uniques: list[_Unique] = []
    if primary["constrained_columns"]:
        mysql = inspector.dialect.name in {"mysql", "mariadb"}
        name = "PRIMARY" if mysql else primary.get("name")
        uniques.append(_Unique(name, tuple(primary["constrained_columns"]), primary=True))
    with quietly():
        for index in inspector.get_indexes(*place):
            columns = index["column_names"]
            if index["unique"] and None not in columns and not _partial(index.get("dialect_options", {})):
                uniques.append(_Unique(index["name"], tuple(str(name) for name in columns)))
        uniques += [
            _Unique(constraint["name"], tuple(constraint["column_names"]))
            for constraint in inspector.get_unique_constraints(*place)
        ]
    return uniques


def _partial(options: dict[str, Any]) -> bool:
    return any(name.endswith(("_where", "_length")) and value for name, value in options.items())


def _refuse_view(inspector: sa.Inspector, plan: Plan, schema: str | None, name: str) -> None:
    if name in inspector.get_table_names(schema=schema):
        return
    views = inspector.get_view_names(schema=schema)
    kind = "a view" if name in views else "no ordinary table"
    raise ConfigError(f"table={plan.table!r} is {kind}; name the table that its rows are kept in")


def _missing_table(inspector: sa.Inspector, plan: Plan, schema: str | None, name: str) -> str:
    try:
        near = difflib.get_close_matches(name, inspector.get_table_names(schema=schema), n=3, cutoff=0.5)
    except sa.exc.DBAPIError:  # no such schema
        near = []
    hint = f"did you mean {' or '.join(near)}?" if near else "check the name and the database"
    return f"table={plan.table!r} is not there; {hint}"


def missing_column(field: str, name: str, found: Found, plan: Plan) -> str:
    """That a column is not there, and which one may be meant."""
    near = difflib.get_close_matches(name, found.columns, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(found.columns)}"
    return f"{field}: the table {plan.table} has no column {name!r}; {hint}"


class quietly(warnings.catch_warnings):  # noqa: N801 - reads as a statement
    """Columns and indexes of exotic kinds are nothing to warn of: they are not ours."""

    def __enter__(self) -> Any:
        super().__enter__()
        warnings.simplefilter("ignore", sa.exc.SAWarning)


def listed(names: Sequence[str]) -> str:
    """Names as people write them."""
    return ", ".join(names)
