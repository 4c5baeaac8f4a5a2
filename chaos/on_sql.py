"""The databases: a file, PostgreSQL, MariaDB; with other people's transactions in the way of the records."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import sqlalchemy as sa
from dev.servers import mariadb_server, postgres_server

from tickoff.stores.sql.engines import database_of

from .ground import Ground
from .store import Blow, Store, Undo, behind_proxies, full_disk, restart

_LOCK = "SELECT id FROM contacts WHERE id >= {low} ORDER BY id LIMIT 200 FOR UPDATE SKIP LOCKED"
_STEP = 1000

_KILL_ON_POSTGRES = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
_OTHERS_ON_MARIADB = (
    "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND user = 'root'"
)


@contextmanager
def sqlite(ground: Ground) -> Iterator[Store]:
    """A file: there is no server, and no network."""
    disk = ground.disk(96)
    url = f"sqlite:///{disk.folder}/store.db"
    store = Store([url], records=url, own_clock=False)
    store.seldom = {"foreign transaction": _hold_the_file(url), **full_disk(disk)}
    yield store


@contextmanager
def postgres(ground: Ground) -> Iterator[Store]:
    """A PostgreSQL that is restarted at once, and loses its connections."""
    disk = ground.disk(768)
    with ExitStack() as stack:
        server = stack.enter_context(
            postgres_server("max_wal_size=64MB", "min_wal_size=32MB", disk=disk.folder)
        )
        store = behind_proxies(stack, ground, server)
        store.records = server.url
        store.seldom = {
            "restart": restart([server], signal.SIGQUIT, disk),
            "connections killed": _on(server.url, _KILL_ON_POSTGRES),
            "foreign transaction": _hold_rows(server.url),
            **full_disk(disk, server),
        }
        yield store


@contextmanager
def mariadb(ground: Ground) -> Iterator[Store]:
    """A MariaDB that is killed; what it acknowledged was with the operating system."""
    disk = ground.disk(768)
    options = ("--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=fsync")
    with ExitStack() as stack:
        server = stack.enter_context(mariadb_server(*options, disk=disk.folder))
        store = behind_proxies(stack, ground, server)
        store.records = server.url
        store.seldom = {
            "restart": restart([server], signal.SIGKILL, disk),
            "connections killed": _kill_on_mariadb(server.url),
            "foreign transaction": _hold_rows(server.url),
            **full_disk(disk, server),
        }
        yield store


def _on(url: str, statement: str) -> Blow:
    def strike(_whom: int, _length: float) -> None:
        with _connected(url) as connection:
            connection.exec_driver_sql(statement)

    return strike


def _kill_on_mariadb(url: str) -> Blow:
    def strike(_whom: int, _length: float) -> None:
        with _connected(url) as connection:
            for (number,) in connection.exec_driver_sql(_OTHERS_ON_MARIADB).all():
                with suppress(sa.exc.DBAPIError):  # it went by itself
                    connection.exec_driver_sql(f"KILL {number:d}")

    return strike


def _hold_rows(url: str) -> Blow:
    """Somebody else's transaction holds some of the rows, and a snapshot of all."""

    def strike(whom: int, _length: float) -> Undo:
        connection = _engine(url).connect().execution_options(isolation_level="REPEATABLE READ")
        connection.exec_driver_sql("SELECT count(*) FROM contacts").all()
        connection.exec_driver_sql(_LOCK.format(low=whom * _STEP)).all()
        return lambda: _let_go(connection)

    return strike


def _hold_the_file(url: str) -> Blow:
    """On SQLite a transaction that writes holds everything."""

    def strike(_whom: int, _length: float) -> Undo:
        connection = _engine(url).connect()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return lambda: _let_go(connection)

    return strike


def _let_go(connection: sa.Connection) -> None:
    with suppress(sa.exc.DBAPIError):  # killed, with all the others
        connection.exec_driver_sql("ROLLBACK")
    connection.invalidate()
    connection.close()


@contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    engine = _engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _engine(url: str) -> sa.Engine:
    return database_of(url).open(10.0)
