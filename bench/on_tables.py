"""Rows into a table by their key: the driver's bulk statements, and Tickoff's upsert."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg
import pymysql
import sqlalchemy as sa

from bench.on_redis import OURS
from bench.ratios import Contender
from tickoff.writes import upsert

MANY = "executemany"
ARRAYS = "arrays through unnest"

_COLUMNS = ("id", "name", "price", "stock", "seen")
_BATCH = 1000
_STARTED = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)

_MAKE = (
    "CREATE TABLE {} (id integer NOT NULL PRIMARY KEY, name varchar(100), price numeric(12, 2), "
    "stock integer, seen {})"
)
_SET = "name = excluded.name, price = excluded.price, stock = excluded.stock, seen = excluded.seen"
_MARIADB_SET = ", ".join(f"{name} = VALUES({name})" for name in _COLUMNS[1:])

_Tuples = Sequence[tuple[Any, ...]]
_Write = Callable[[_Tuples], None]


def tuples(count: int, edition: int) -> list[tuple[Any, ...]]:
    """So many products; another edition has other values in every row."""
    return [
        (n, f"product {n}, {edition}", Decimal(n + edition) / 100, n % 50, _STARTED + timedelta(seconds=n))
        for n in range(1, count + 1)
    ]


@contextmanager
def postgres_contenders(url: str, rows: int) -> Iterator[list[Contender]]:
    """Psycopg's pipeline of single rows, and an array a column, beside Tickoff."""
    new = "excluded.name, excluded.price, excluded.stock, excluded.seen"
    differs = f"(t.name, t.price, t.stock, t.seen) IS DISTINCT FROM ({new})"
    conflict = f"ON CONFLICT (id) DO UPDATE SET {_SET} WHERE {differs}"
    one = f"INSERT INTO bare AS t VALUES (%s, %s, %s, %s, %s) {conflict}"
    arrays = "unnest(%s::int[], %s::text[], %s::numeric[], %s::int[], %s::timestamp[])"
    all_at_once = f"INSERT INTO bare AS t SELECT * FROM {arrays} {conflict}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with psycopg.connect(url) as connection:

        def many(batch: _Tuples) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(one, batch)

        def unnest(batch: _Tuples) -> None:
            connection.execute(all_at_once, [list(column) for column in zip(*batch, strict=True)])

        for table in ("bare", "ours"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(_MAKE.format(table, "timestamp"))
        connection.commit()
        empty = _emptied(connection.execute, connection.commit, "TRUNCATE bare")
        yield [
            Contender(MANY, _bare(many, empty, connection.commit, rows)),
            Contender(ARRAYS, _bare(unnest, empty, connection.commit, rows)),
            Contender(OURS, _ours(engine, rows)),
        ]
    engine.dispose()


@contextmanager
def mariadb_contenders(url: str, rows: int) -> Iterator[list[Contender]]:
    """PyMySQL's executemany joins rows into one statement by itself."""
    one = f"INSERT INTO bare VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE {_MARIADB_SET}"
    parts = sa.make_url(url)
    engine = sa.create_engine(parts.set(drivername="mysql+pymysql"))
    options: dict[str, Any] = {"host": parts.host, "port": parts.port, "user": parts.username}
    connection = pymysql.connect(**options, database=parts.database)
    with connection, connection.cursor() as cursor:
        for table in ("bare", "ours"):
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(_MAKE.format(table, "datetime(6)"))
        empty = _emptied(cursor.execute, connection.commit, "TRUNCATE bare")

        def many(batch: _Tuples) -> None:
            cursor.executemany(one, batch)

        yield [
            Contender(MANY, _bare(many, empty, connection.commit, rows)),
            Contender(OURS, _ours(engine, rows)),
        ]
    engine.dispose()


@contextmanager
def sqlite_contenders(folder: Path, rows: int) -> Iterator[list[Contender]]:
    """The standard library's executemany steps one prepared statement."""
    differs = " OR ".join(f"bare.{name} IS NOT excluded.{name}" for name in _COLUMNS[1:])
    one = f"INSERT INTO bare VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET {_SET} WHERE {differs}"
    engine = sa.create_engine(f"sqlite:///{folder}/ours.db")
    with closing(sqlite3.connect(folder / "bare.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(_MAKE.format("bare", "timestamp"))
        with engine.begin() as other:
            other.exec_driver_sql("PRAGMA journal_mode = WAL")
            other.exec_driver_sql(_MAKE.format("ours", "timestamp"))

        def many(batch: _Tuples) -> None:
            connection.executemany(one, batch)

        empty = _emptied(connection.execute, connection.commit, "DELETE FROM bare")
        yield [
            Contender(MANY, _bare(many, empty, connection.commit, rows, _as_sqlite_has_it)),
            Contender(OURS, _ours(engine, rows)),
        ]
    engine.dispose()


def _as_sqlite_has_it(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values as its driver takes them: it has neither decimals nor instants."""
    return (row[0], row[1], float(row[2]), row[3], row[4].isoformat(" ", "microseconds"))


def _emptied(execute: Callable[[Any], Any], commit: Callable[[], None], text: str) -> Callable[[], None]:
    def empty() -> None:
        execute(text)
        commit()

    return empty


def _bare(
    write: _Write,
    empty: Callable[[], None],
    commit: Callable[[], None],
    count: int,
    suited: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
) -> Callable[[int], float]:
    """A cycle: all rows new, all rows again, all rows changed; a transaction each."""
    first, second = tuples(count, 0), tuples(count, 1)

    def run(cycles: int) -> float:
        spent = 0.0
        for _ in range(cycles):
            empty()
            begun = perf_counter()
            for edition in (first, first, second):
                rows = [suited(row) for row in edition] if suited else edition
                for start in range(0, count, _BATCH):
                    write(rows[start : start + _BATCH])
                commit()
            spent += perf_counter() - begun
        return spent

    return run


def _ours(engine: sa.Engine, count: int) -> Callable[[int], float]:
    def dicts(edition: int) -> list[dict[str, Any]]:
        return [dict(zip(_COLUMNS, row, strict=True)) for row in tuples(count, edition)]

    first, second = dicts(0), dicts(1)

    def run(cycles: int) -> float:
        spent = 0.0
        for _ in range(cycles):
            with engine.begin() as db:
                db.exec_driver_sql("DELETE FROM ours" if engine.name == "sqlite" else "TRUNCATE ours")
            begun = perf_counter()
            for edition in (first, first, second):
                with engine.begin() as db:
                    upsert(db, "ours", edition, key="id")
            spent += perf_counter() - begun
        return spent

    return run
