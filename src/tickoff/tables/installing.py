"""The tracking columns: added without rewriting the table or holding it for long, and taken away again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateColumn, CreateTable, DropTable

from ..errors import ConfigError, StoreUnreachable
from ..stores.sql.schema import dialect_for
from .base import Plan, State
from .companion import results, table_of
from .database import Database
from .dialects import Moment
from .finding import Found, find, key_of, seek
from .ledger import LONGEST_TOKEN, ledger, record_name, word
from .shape import FINGERPRINT, refuse_clashes, refuse_long_names, refuse_type, tracking_names

_LOCK_WAIT = 2
"""Seconds an ALTER TABLE queues for the table: while it queues, everybody else queues behind it."""

_LOCK_TRIES = 15


@dataclass(frozen=True)
class Installing:
    """Adding and dropping the columns of one plan."""

    database: Database
    plan: Plan

    def install(self) -> list[str]:
        """Add what is missing; the statements that were run."""
        return self._patiently(self._install)

    def uninstall(self, *, states: bool) -> list[str]:
        """Drop the tracking columns, and the states if asked for."""
        return self._patiently(lambda connection: self._uninstall(connection, states=states))

    def _install(self, connection: sa.Connection) -> list[str]:
        with self.database.dialect.schema.schema_lock(connection):
            refuse_long_names(connection.dialect, self.plan)
            inspector = sa.inspect(connection)
            users, kept = self._looked_up(inspector)
            keeper = users if kept is self.plan else seek(inspector, kept)
            texts: list[str] = []
            if not inspector.has_table(ledger.name):
                texts.append(_compiled(CreateTable(ledger), connection.dialect))
            if keeper is None:
                texts.append(_companion(connection, users, kept))
            else:
                texts += self._completed(connection, keeper, kept)
            self._run(connection, texts)
        return texts

    def ddl(self) -> list[str]:
        """The statements for a companion that is not there yet; its key is like the user's, which is read."""
        return self.database.read(self._ddl)

    def _ddl(self, connection: sa.Connection) -> list[str]:
        refuse_long_names(connection.dialect, self.plan)
        users, kept = self._looked_up(sa.inspect(connection))
        return [_ledger(connection.dialect), _companion(connection, users, kept)]

    def _looked_up(self, inspector: sa.Inspector) -> tuple[Found, Plan]:
        """The user's table, and the plan as the table that keeps the states has it."""
        users = find(inspector, self.plan)
        _, key = key_of(inspector, users, self.plan)
        if self.plan.companion is not None:
            refuse_clashes(users, self.plan, key)
        return users, self.plan.kept(key)

    def _completed(self, connection: sa.Connection, keeper: Found, kept: Plan) -> list[str]:
        """What a table lacks that is there."""
        inspector = sa.inspect(connection)
        key_of(inspector, keeper, kept)
        _refuse_engine(inspector, keeper, kept)
        self._refuse_used_status(connection, keeper)
        wanted = columns(kept) if kept is self.plan else [*columns(kept), *results(kept)]
        missing = [column for column in wanted if column.name not in keeper.columns]
        return add_columns(keeper.schema, keeper.name, missing, connection.dialect)

    def _uninstall(self, connection: sa.Connection, *, states: bool) -> list[str]:
        with self.database.dialect.schema.schema_lock(connection):
            inspector = sa.inspect(connection)
            kept = self.plan.kept(())
            keeper = find(inspector, kept) if kept is self.plan else seek(inspector, kept)
            texts = [] if keeper is None else self._removed(connection, keeper, states=states)
            self._run(connection, texts)
            if keeper is not None and inspector.has_table(ledger.name):
                record = record_name(keeper.schema, keeper.name, self.plan.status)
                connection.execute(sa.delete(ledger).where(ledger.c.record == record))
        return texts

    def _removed(self, connection: sa.Connection, keeper: Found, *, states: bool) -> list[str]:
        """What is taken away; a companion as a whole, where nothing but key and answers would be left."""
        doomed = [*tracking_names(self.plan).values(), *([self.plan.status] if states else [])]
        if states and self.plan.companion is not None:
            key = sa.inspect(connection).get_pk_constraint(keeper.name, schema=keeper.schema)
            if not keeper.columns.keys() - {*doomed, *key["constrained_columns"], *self.plan.result}:
                return [_compiled(DropTable(_named(keeper)), connection.dialect)]
        if set(doomed) <= set(keeper.columns):
            self._land(connection, keeper)
        present = [name for name in doomed if name in keeper.columns]
        return drop_columns(keeper.schema, keeper.name, present, connection.dialect)

    def _land(self, connection: sa.Connection, found: Found) -> None:
        """Nothing stays in flight when nothing is left to tell whose it is."""
        status: sa.ColumnClause[Any] = sa.column(self.plan.status)
        change = sa.update(sa.table(found.name, status, schema=found.schema))
        flying = change.where(status == State.IN_FLIGHT.value)
        connection.execute(flying.values({self.plan.status: State.PENDING.value}))

    def _run(self, connection: sa.Connection, texts: Sequence[str]) -> None:
        for statement in self.database.dialect.short_lock_waits(_LOCK_WAIT):
            connection.exec_driver_sql(statement)
        for text in texts:
            connection.exec_driver_sql(text)

    def _refuse_used_status(self, connection: sa.Connection, found: Found) -> None:
        """A column that is there already must hold states, or nothing."""
        column = found.columns.get(self.plan.status)
        if column is None:
            return
        refuse_type(self.plan, column["type"])
        status: sa.ColumnClause[Any] = sa.column(self.plan.status)
        table = sa.table(found.name, status, schema=found.schema)
        status = table.c[self.plan.status]
        words = [state.value for state in State]
        query = sa.select(status).distinct().where(sa.cast(status, sa.String(200)).not_in(words)).limit(5)
        others = list(connection.execute(query).scalars())
        if others:
            raise ConfigError(
                f"status: the column {self.plan.status} of {self.plan.table} has values such as "
                f"{', '.join(map(repr, others))}, which are no states; name another column, or make them "
                f"NULL or one of {', '.join(words)}"
            )

    def _patiently(self, change: Callable[[sa.Connection], list[str]]) -> list[str]:
        """Try again while somebody's transaction holds the table: each try queues for a moment only."""
        for attempt in range(1, _LOCK_TRIES + 1):
            try:
                return self.database.read(change)
            except StoreUnreachable:
                if attempt == _LOCK_TRIES:
                    raise
            time.sleep(0.2 * attempt)
        raise AssertionError("unreachable")


def columns(plan: Plan) -> list[sa.Column[Any]]:
    """What is beside the user's columns: constant defaults, so that no engine rewrites the table for them."""
    names = tracking_names(plan)
    more = [] if plan.companion is None else [sa.Column(names[FINGERPRINT], word(32))]
    return [
        sa.Column(plan.status, _exact(20), nullable=False, server_default=State.PENDING.value),
        sa.Column(names["claim"], _exact(LONGEST_TOKEN + 8)),
        sa.Column(names["until"], Moment),
        sa.Column(names["attempts"], sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column(names["error"], sa.Text().with_variant(mysql.TEXT(charset="utf8mb4"), "mysql", "mariadb")),
        *more,
    ]


def ddl(plan: Plan, dialect_name: str) -> str:
    """The statements that install a plan, for a dialect, connecting to nothing."""
    kind: Any = type(dialect_for(dialect_name))
    dialect = kind(paramstyle="named")  # in which a % in a name is a %
    schema, dot, name = plan.table.partition(".")
    place = (schema, name) if dot else (None, plan.table)
    added = add_columns(place[0], place[1], columns(plan), dialect)
    return "".join(f"{text};\n\n" for text in [_ledger(dialect), *added])


def _ledger(dialect: sa.Dialect) -> str:
    return _compiled(CreateTable(ledger, if_not_exists=True), dialect)


def _companion(connection: sa.Connection, users: Found, kept: Plan) -> str:
    return _compiled(CreateTable(table_of(connection, users, kept, columns(kept))), connection.dialect)


def _named(found: Found) -> sa.Table:
    return sa.Table(found.name, sa.MetaData(), schema=found.schema)


def add_columns(
    schema: str | None, name: str, missing: Sequence[sa.Column[Any]], dialect: sa.Dialect
) -> list[str]:
    """ALTER TABLE … ADD COLUMN, in one statement where the engine takes one."""
    home = sa.Table(name, sa.MetaData(), *(column._copy() for column in missing), schema=schema)
    parts = [f"ADD COLUMN {_compiled(CreateColumn(column), dialect)}" for column in home.columns]
    return _altered(home, parts, dialect)


def drop_columns(schema: str | None, name: str, doomed: Sequence[str], dialect: sa.Dialect) -> list[str]:
    """ALTER TABLE … DROP COLUMN, in one statement where the engine takes one."""
    home = sa.Table(name, sa.MetaData(), schema=schema)
    quote = dialect.identifier_preparer.quote
    return _altered(home, [f"DROP COLUMN {quote(column)}" for column in doomed], dialect)


def _altered(home: sa.Table, parts: Sequence[str], dialect: sa.Dialect) -> list[str]:
    if not parts:
        return []
    table = dialect.identifier_preparer.format_table(home)
    joined = parts if dialect.name == "sqlite" else [", ".join(parts)]
    return [f"ALTER TABLE {table} {part}" for part in joined]


def _compiled(element: Any, dialect: sa.Dialect) -> str:
    return str(element.compile(dialect=dialect)).strip()


def _exact(length: int) -> sa.types.TypeEngine[str]:
    """Words that are compared as they are, in whatever collation the table has."""
    exact = mysql.VARCHAR(length, charset="ascii", collation="ascii_bin")
    return sa.String(length).with_variant(exact, "mysql", "mariadb")


def _refuse_engine(inspector: sa.Inspector, found: Found, plan: Plan) -> None:
    """MyISAM and the like know no transactions."""
    if inspector.dialect.name not in {"mysql", "mariadb"}:
        return
    engine = inspector.get_table_options(found.name, schema=found.schema).get("mysql_engine", "InnoDB")
    if str(engine).lower() != "innodb":
        raise ConfigError(
            f"table={plan.table!r} is kept by {engine}, which knows no transactions; run: "
            f"ALTER TABLE {plan.table} ENGINE=InnoDB"
        )
