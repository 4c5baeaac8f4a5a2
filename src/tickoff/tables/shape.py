"""What a plan means in a database: the table as it is there, its key, its columns, the tracking columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..errors import ConfigError
from .base import Plan, State
from .dialects import Moment
from .finding import Found, find, key_of, listed, missing_column, quietly, seek
from .ledger import record_name

TRACKING = ("claim", "until", "attempts", "error")
"""Suffixes of the columns beside the column of states."""

FINGERPRINT = "fingerprint"
"""That of one more in a companion: what the user's row was like when it was claimed."""

INSTALL = "run: tickoff records install NAME, with the name of the job"

_LONGEST_NAME: dict[str, tuple[int, Callable[[str], int]]] = {
    "postgresql": (63, lambda name: len(name.encode())),
    "mysql": (64, len),
    "mariadb": (64, len),
}
"""What a database allows in the name of a column or table, and how it measures: PostgreSQL cuts the rest."""


def tracking_names(plan: Plan) -> dict[str, str]:
    """The tracking columns beside the column of states, by what they are for."""
    suffixes = TRACKING if plan.companion is None else (*TRACKING, FINGERPRINT)
    return {suffix: f"{plan.status}_{suffix}" for suffix in suffixes}


@dataclass(frozen=True)
class Shape:
    """A plan, found in its database."""

    plan: Plan
    record: str
    """What the ledger calls it."""
    table: sa.Table
    """Where states are kept: the user's table, or its companion."""
    key: tuple[sa.Column[Any], ...]
    """Of that table, in the order of the index that makes it unique."""
    index: str | None
    users: sa.Table
    """The user's table."""
    users_key: tuple[sa.Column[Any], ...]
    users_index: str | None
    columns: tuple[sa.Column[Any], ...]
    """What the user's function gets."""
    status: sa.Column[Any]
    claim: sa.Column[Any]
    until: sa.Column[Any]
    attempts: sa.Column[Any]
    error: sa.Column[Any]
    fingerprint: sa.Column[Any] | None = None

    @property
    def apart(self) -> bool:
        """Whether states are kept in a companion, in which a new row has none yet."""
        return self.table is not self.users

    @property
    def where(self) -> sa.ColumnElement[bool]:
        """Which rows are records at all."""
        return condition(self.plan.where)


def condition(where: str | sa.ColumnElement[bool] | None) -> sa.ColumnElement[bool]:
    """A user's condition: an expression, or SQL of the user's own."""
    if where is None:
        return sa.true()
    return sa.text(f"({where})") if isinstance(where, str) else where  # type: ignore[return-value]  # works as one


def shape_of(connection: sa.Connection, plan: Plan) -> Shape:
    """The plan in this database; refused where the tables are not as they must be."""
    refuse_long_names(connection.dialect, plan)
    inspector = sa.inspect(connection)
    found = find(inspector, plan)
    users_index, users_key = key_of(inspector, found, plan)
    _refuse_missing_columns(found, plan, users_key)
    refuse_clashes(found, plan, users_key)
    kept = plan.kept(users_key)
    keeper = found if kept is plan else seek(inspector, kept)
    if keeper is None:
        raise ConfigError(f"the companion {kept.table} of {plan.table} is not there; {INSTALL}")
    index, key = key_of(inspector, keeper, kept)
    _refuse_bad_status(keeper, kept)
    _refuse_untracked(inspector, keeper, kept)
    table = _reflected(connection, keeper, kept)
    users = table if kept is plan else _reflected(connection, found)
    return Shape(
        plan=plan,
        record=record_name(keeper.schema, keeper.name, plan.status),
        table=table,
        key=tuple(table.c[name] for name in key),
        index=index,
        users=users,
        users_key=tuple(users.c[name] for name in key),
        users_index=users_index,
        columns=tuple(users.c[name] for name in _chosen(found, plan, users_key)),
        status=table.c[plan.status],
        **{suffix: table.c[name] for suffix, name in tracking_names(plan).items()},
    )


def refuse_long_names(dialect: sa.Dialect, plan: Plan) -> None:
    """Refuse names that this database would cut, or refuse halfway, once ours are made of them."""
    longest = max(tracking_names(plan).values(), key=len)
    limit, measured = _LONGEST_NAME.get(dialect.name, (sys.maxsize, len))
    if measured(longest) > limit:
        raise ConfigError(
            f"status={plan.status!r:.80} is too long: {dialect.name} allows {limit} in a column's name, and "
            f"{len(longest) - len(plan.status)} are ours; name a shorter one"
        )
    companion = (plan.companion or "").rpartition(".")[2]
    if companion and measured(companion) > limit:
        raise ConfigError(
            f"companion={companion!r:.80} is too long: {dialect.name} allows {limit} in a table's name; "
            'name a shorter one: companion="…"'
        )


def _refuse_missing_columns(found: Found, plan: Plan, key: Sequence[str]) -> None:
    results = () if plan.companion else plan.result
    fields = {"key": key, "result": results, "columns": plan.columns or ()}
    for field, names in fields.items():
        for name in names:
            if name not in found.columns:
                raise ConfigError(missing_column(field, name, found, plan))


def refuse_clashes(found: Found, plan: Plan, key: Sequence[str]) -> None:
    """A result that goes into a key or a tracking column would undo what keeps records apart."""
    own = {plan.status, *tracking_names(plan).values()}
    for name in plan.result:
        if name in own or name in key:
            what = "the key" if name in key else "Tickoff's own"
            raise ConfigError(f"result: the column {name!r} is {what}; name another column for the result")
        if plan.companion and name in found.columns:
            raise ConfigError(
                f"result: {plan.table} has a column {name!r}, and beside a companion it is only read; "
                "name a column that the companion shall have"
            )
    if len(set(plan.result)) < len(plan.result):
        raise ConfigError(f"result={listed(plan.result)} names a column twice; name each once")


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
    wanted = [plan.status, *tracking_names(plan).values(), *plan.result]
    missing = [name for name in wanted if name not in found.columns]
    if missing:
        raise ConfigError(f"the table {plan.table} has no {listed(missing)} to keep track in; {INSTALL}")
    if not inspector.has_table("tickoff_claim"):
        raise ConfigError(f"the table tickoff_claim is missing in the database of {plan.table}; {INSTALL}")


def _chosen(found: Found, plan: Plan, key: Sequence[str]) -> list[str]:
    """The columns for the user's function: the key's and those asked for, or all but ours."""
    if plan.columns is not None:
        return list(dict.fromkeys([*key, *plan.columns]))
    own = set() if plan.companion else {plan.status, *tracking_names(plan).values()}
    return [name for name in found.columns if name not in own or name in key]


def _reflected(connection: sa.Connection, found: Found, tracked: Plan | None = None) -> sa.Table:
    """The table, with its states where it keeps some."""
    known = [] if tracked is None else [sa.Column(tracking_names(tracked)["until"], Moment)]
    with quietly():
        table = sa.Table(
            found.name,
            sa.MetaData(),
            *known,
            schema=found.schema,
            autoload_with=connection,
            resolve_fks=False,
        )
    for column in table.columns:
        if isinstance(column.type, sa.JSON):
            column.type.none_as_null = True  # no result is no value, not a JSON null
    return table
