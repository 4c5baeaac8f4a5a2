"""What differs between SQLite, PostgreSQL and MySQL/MariaDB, each difference a small named thing."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from ...errors import ConfigError, StoreUnreachable
from ..base import IO_LIMIT

_SCHEMA_LOCK = 0x7469636B
"""An arbitrary number ("tick") that all servers agree on while they make the schema."""

_SCHEMA_WAIT = 30

_PAUSE = 0.01

_ABANDONED = math.ceil(IO_LIMIT)
"""Seconds after which the database ends a transaction of ours that has fallen silent.

The machine may have vanished amid it. Nobody hangs up for it, so its locks, on the lease of a job, say, would
stay for the hours until the network gives up. MySQL cannot tell such a connection from an idle one.
"""

_BEGIN_ON_POSTGRESQL = f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{_ABANDONED}s'"

_ZONE_AND_PATIENCE = f"SET time_zone = '+00:00' /*M!100300 , idle_transaction_timeout = {_ABANDONED} */"
"""What MySQL takes for a comment, MariaDB obeys."""

_WHO_AND_READ_COMMITTED = """
    SELECT pg_backend_pid(), CASE current_setting('default_transaction_isolation')
        WHEN 'read committed' THEN NULL
        ELSE set_config('default_transaction_isolation', 'read committed', false)
    END
"""
"""In one trip, and asked before it is set, so that nothing is left behind in a pooler's session."""


@dataclass(frozen=True)
class Dialect:
    """The engine's clock in ms, its way to begin a write, to insert unless present, to serialise DDL."""

    name: str
    clock: sa.ColumnElement[int]
    begin: str

    def insert_if_absent(self, table: sa.Table) -> sa.Insert:
        """An insert that does nothing where the key is taken."""
        match self.name:
            case "postgresql":
                return postgresql.insert(table).on_conflict_do_nothing()
            case "sqlite":
                return sqlite.insert(table).on_conflict_do_nothing()
            case _:
                return sa.insert(table).prefix_with("IGNORE")

    def upsert(self, table: sa.Table, values: Mapping[str, Any], changed: Sequence[str]) -> sa.Insert:
        """An insert of values that changes these columns where the key is taken."""
        insert: Any  # each dialect has its own, with other methods
        if self.name == "mysql":
            insert = mysql.insert(table).values(values)
            upsert = insert.on_duplicate_key_update({name: insert.inserted[name] for name in changed})
        else:
            insert = (postgresql if self.name == "postgresql" else sqlite).insert(table).values(values)
            new = {name: insert.excluded[name] for name in changed}
            upsert = insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=new)
        return cast("sa.Insert", upsert)

    def upsert_by(
        self, table: sa.Table, values: Mapping[str, Any], changed: Mapping[str, sa.ColumnElement[Any]]
    ) -> sa.Insert:
        """An insert of values that changes a row by these expressions where the key is taken.

        In their order: MySQL lets a later one see what an earlier one has changed.
        """
        insert: Any
        if self.name == "mysql":
            upsert = mysql.insert(table).values(values).on_duplicate_key_update(list(changed.items()))
        else:
            insert = (postgresql if self.name == "postgresql" else sqlite).insert(table).values(values)
            upsert = insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=dict(changed))
        return cast("sa.Insert", upsert)

    def writing(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """A transaction that writes."""
        return transaction(connection, self.begin)

    @contextmanager
    def schema_lock(self, connection: sa.Connection) -> Iterator[None]:
        """Let one server at a time make or change the tables."""
        match self.name:
            case "postgresql":
                with self.writing(connection):
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
                    yield
            case "sqlite":
                with self.writing(connection):
                    yield
            case _:  # DDL commits by itself, so the lock is a named one
                locked = connection.execute(
                    sa.select(sa.func.get_lock("tickoff_schema", _SCHEMA_WAIT))
                ).scalar()
                if locked != 1:
                    raise StoreUnreachable(
                        f"another server has been making the tables for {_SCHEMA_WAIT} s; try again"
                    )
                try:
                    yield
                finally:
                    connection.execute(sa.select(sa.func.release_lock("tickoff_schema")))

    def prepare(self, dbapi_connection: Any, limit: float) -> Any:
        """Set a new connection up: its zone, its isolation, how long it waits for others' locks.

        Returns the last row that was told; on PostgreSQL it begins with the number of the session.
        """
        told = None
        for statement in self._session(limit):
            cursor = dbapi_connection.cursor()
            _persistently(partial(cursor.execute, statement), limit)
            told = cursor.fetchone() if cursor.description else None
            cursor.close()
        return told

    def _session(self, limit: float) -> list[str]:
        match self.name:
            case "postgresql":
                return [_WHO_AND_READ_COMMITTED]
            case "sqlite":
                return [f"PRAGMA busy_timeout = {int(limit * 1000)}", "PRAGMA journal_mode = WAL"]
            case _:
                return [
                    _ZONE_AND_PATIENCE,
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    f"SET innodb_lock_wait_timeout = {max(1, int(limit))}",
                ]


def _persistently(execute: Callable[[], object], limit: float) -> None:
    """SQLite waits for others' locks, but not while it changes the journal mode of a new file: so we do."""
    end = time.monotonic() + limit
    while True:
        try:
            execute()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE)
        else:
            return


@contextmanager
def transaction(connection: sa.Connection, begin: str) -> Iterator[None]:
    """A transaction on an autocommit connection, by plain statements: the same on every driver."""
    connection.exec_driver_sql(begin)
    try:
        yield
    except BaseException:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


def _milliseconds(seconds: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.cast(sa.func.floor(seconds * 1000), sa.BigInteger)


_POSTGRESQL = Dialect("postgresql", _milliseconds(sa.extract("epoch", sa.func.now())), _BEGIN_ON_POSTGRESQL)
_MYSQL = Dialect(
    "mysql", sa.cast(sa.func.floor(sa.func.unix_timestamp(sa.func.now(6)) * 1000), sa.BigInteger), "BEGIN"
)
_SQLITE = Dialect(
    "sqlite",
    # julianday is a double of days: good to 0.1 ms, and there on every SQLite there is.
    sa.cast((sa.func.julianday("now") - 2440587.5) * 86400000, sa.BigInteger),
    "BEGIN IMMEDIATE",
)


def dialect_of(engine: sa.Engine) -> Dialect:
    """The differences for an engine; other databases are refused."""
    return dialect_named(engine.dialect.name)


def dialect_named(name: str) -> Dialect:
    """The differences for a database by its name."""
    match name:
        case "postgresql":
            return _POSTGRESQL
        case "mysql" | "mariadb":
            return _MYSQL
        case "sqlite":
            return _SQLITE
        case other:
            raise ConfigError(
                f"the database {other!r} is not supported; use SQLite, PostgreSQL, MySQL or MariaDB"
            )
