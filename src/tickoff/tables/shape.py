"""What a plan means in a database: the table as it is there, its key, its columns, the tracking columns."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..errors import ConfigError
from .base import Plan, State
from .dialects import Moment
from .ledger import record_name

TRACKING = ("claim", "until", "attempts", "error")
"""Suffixes of the columns beside the column of states."""

INSTALL = "run: tickoff records install"

_LONGEST_COLUMN: dict[str, tuple[int, Callable[[str], int]]] = {
    "postgresql": (63, lambda name: len(name.encode())),
    "mysql": (64, len),
    "mariadb": (64, len),
}
"""What a database allows in a column's name, and how it measures: PostgreSQL cuts what is longer."""


def tracking_names(status: str) -> dict[str, str]:
    """The tracking columns of a column of states, by what they are for."""
    return {suffix: f"{status}_{suffix}" for suffix in TRACKING}


@dataclass(frozen=True)
class Shape:
    """A plan, found in its database."""

    plan: Plan
    record: str
    """What the ledger calls it."""
    table: sa.Table
    key: tuple[sa.Column[Any], ...]
    """In the order of the index that makes it unique."""
    index: str | None
    columns: tuple[sa.Column[Any], ...]
    """What the user's function gets."""
    status: sa.Column[Any]
    claim: sa.Column[Any]
    until: sa.Column[Any]
    attempts: sa.Column[Any]
    error: sa.Column[Any]

    @property
    def where(self) -> sa.ColumnElement[bool]:
        """Which rows are records at all."""
        return condition(self.plan.where)


def condition(where: str | sa.ColumnElement[bool] | None) -> sa.ColumnElement[bool]:
    """A user's condition: an expression, or SQL of the user's own."""
    if where is None:
        return sa.true()
    return sa.text(f"({where})") if isinstance(where, str) else where  # type: ignore[return-value]  # works as one


@dataclass(frozen=True)
class Found:
    """A user's table before anything is asked of it."""

    name: str
    schema: str | None
    columns: dict[str, dict[str, Any]]
    """As the inspector tells of them."""


def find(inspector: sa.Inspector, plan: Plan) -> Found:
    """The table by its name, or `schema.name`; refused when it is none."""
    places: list[tuple[str | None, str]] = [(None, plan.table)]
    schema, dot, name = plan.table.partition(".")
    if dot:
        places.append((schema, name))
    for schema_, name_ in places:
        if inspector.has_table(name_, schema=schema_):
            _refuse_view(inspector, plan, schema_, name_)
            with _quietly():
                columns = inspector.get_columns(name_, schema=schema_)
            return Found(name_, schema_, {column["name"]: dict(column) for column in columns})
    raise ConfigError(_missing_table(inspector, plan, *places[-1]))


def shape_of(connection: sa.Connection, plan: Plan) -> Shape:
    """The plan in this database; refused where the table is not as it must be."""
    refuse_long_names(connection.dialect, plan)
    inspector = sa.inspect(connection)
    found = find(inspector, plan)
    index, key = key_of(inspector, found, plan)
    _refuse_missing_columns(found, plan, key)
    _refuse_clashes(plan, key)
    _refuse_bad_status(found, plan)
    _refuse_untracked(inspector, found, plan)
    table = _reflected(connection, found, plan)
    chosen = _chosen(found, plan, key)
    names = tracking_names(plan.status)
    return Shape(
        plan=plan,
        record=record_name(found.schema, found.name, plan.status),
        table=table,
        key=tuple(table.c[name] for name in key),
        index=index,
        columns=tuple(table.c[name] for name in chosen),
        status=table.c[plan.status],
        **{suffix: table.c[names[suffix]] for suffix in TRACKING},
    )


def key_of(inspector: sa.Inspector, found: Found, plan: Plan) -> tuple[str | None, tuple[str, ...]]:
    """The index that makes the key unique, and the key's columns in its order."""
    candidates = _unique_indexes(inspector, found)
    if not plan.key:
        if not candidates or not candidates[0].primary:
            raise ConfigError(f"key: the table {plan.table} has no primary key; name a unique key with key=")
        return candidates[0].name, candidates[0].columns
    unknown = [name for name in plan.key if name not in found.columns]
    if unknown:
        raise ConfigError(_missing_column("key", unknown[0], found, plan))
    fitting = [candidate for candidate in candidates if sorted(candidate.columns) == sorted(plan.key)]
    if not fitting:
        raise ConfigError(
            f"key={_listed(plan.key)} has no unique index on {plan.table}, so two rows may share it and no "
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
    with _quietly():
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


def refuse_long_names(dialect: sa.Dialect, plan: Plan) -> None:
    """Refuse names that this database would cut, or refuse halfway, once ours are made of them."""
    longest = max(tracking_names(plan.status).values(), key=len)
    limit, measured = _LONGEST_COLUMN.get(dialect.name, (len(longest), len))
    if measured(longest) > limit:
        raise ConfigError(
            f"status={plan.status!r:.80} is too long: {dialect.name} allows {limit} in a column's name, and "
            f"{len(longest) - len(plan.status)} are ours; name a shorter one"
        )


def _refuse_missing_columns(found: Found, plan: Plan, key: Sequence[str]) -> None:
    fields = {"key": key, "result": plan.result, "columns": plan.columns or ()}
    for field, names in fields.items():
        for name in names:
            if name not in found.columns:
                raise ConfigError(_missing_column(field, name, found, plan))


def _missing_column(field: str, name: str, found: Found, plan: Plan) -> str:
    near = difflib.get_close_matches(name, found.columns, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(found.columns)}"
    return f"{field}: the table {plan.table} has no column {name!r}; {hint}"


def _refuse_clashes(plan: Plan, key: Sequence[str]) -> None:
    """A result that goes into a key or a tracking column would undo what keeps records apart."""
    own = {plan.status, *tracking_names(plan.status).values()}
    for name in plan.result:
        if name in own or name in key:
            what = "the key" if name in key else "Tickoff's own"
            raise ConfigError(f"result: the column {name!r} is {what}; name another column for the result")
    if len(set(plan.result)) < len(plan.result):
        raise ConfigError(f"result={_listed(plan.result)} names a column twice; name each once")


def _refuse_bad_status(found: Found, plan: Plan) -> None:
    column = found.columns.get(plan.status)
    if column is not None:
        refuse_type(plan, column["type"])


def refuse_type(plan: Plan, kind: Any) -> None:
    """A column of states holds the four words."""
    if isinstance(kind, sa.Enum):
        missing = [state.value for state in State if state.value not in kind.enums]
        if missing:
            raise ConfigError(
                f"status: the column {plan.status} of {plan.table} does not know {', '.join(missing)}; "
                "add them to its type, or name another column"
            )
    elif not isinstance(kind, sa.String):
        raise ConfigError(
            f"status: the column {plan.status} of {plan.table} is {kind}, which holds no words such as "
            "IN_FLIGHT; name a text column, or one that is not there yet"
        )
    elif kind.length is not None and kind.length < len(State.IN_FLIGHT):
        raise ConfigError(
            f"status: the column {plan.status} of {plan.table} holds {kind.length} characters; make it "
            f"{len(State.IN_FLIGHT)} or longer, or name another column"
        )


def _refuse_untracked(inspector: sa.Inspector, found: Found, plan: Plan) -> None:
    wanted = [plan.status, *tracking_names(plan.status).values()]
    missing = [name for name in wanted if name not in found.columns]
    if missing:
        raise ConfigError(f"the table {plan.table} has no {_listed(missing)} to keep track in; {INSTALL}")
    if not inspector.has_table("tickoff_claim"):
        raise ConfigError(f"the table tickoff_claim is missing in the database of {plan.table}; {INSTALL}")


def _chosen(found: Found, plan: Plan, key: Sequence[str]) -> list[str]:
    """The columns for the user's function: the key's and those asked for, or all but ours."""
    if plan.columns is not None:
        return list(dict.fromkeys([*key, *plan.columns]))
    own = {plan.status, *tracking_names(plan.status).values()}
    return [name for name in found.columns if name not in own or name in key]


def _reflected(connection: sa.Connection, found: Found, plan: Plan) -> sa.Table:
    until = sa.Column(tracking_names(plan.status)["until"], Moment)
    with _quietly():
        table = sa.Table(
            found.name, sa.MetaData(), until, schema=found.schema, autoload_with=connection, resolve_fks=False
        )
    for column in table.columns:
        if isinstance(column.type, sa.JSON):
            column.type.none_as_null = True  # no result is no value, not a JSON null
    return table


class _quietly(warnings.catch_warnings):  # noqa: N801 - reads as a statement
    """Columns and indexes of exotic kinds are nothing to warn of: they are not ours."""

    def __enter__(self) -> Any:
        super().__enter__()
        warnings.simplefilter("ignore", sa.exc.SAWarning)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
