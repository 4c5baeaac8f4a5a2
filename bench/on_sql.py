"""Lock cycles on databases: the two bare statements over the driver, an advisory lock, and Tickoff."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql

from bench.on_redis import OURS, our_lock
from bench.ratios import Contender
from tickoff import Tickoff

BARE, ADVISORY = "bare statements", "advisory lock"

Execute = Callable[[str, tuple[Any, ...]], Any]

_TABLE = (
    "CREATE TABLE bare_lease (name varchar(200) PRIMARY KEY, token varchar(64) NOT NULL, until {} NOT NULL)"
)

_POSTGRES_RACE = (
    "INSERT INTO bare_lease (name, token, until) VALUES (%s, %s, now() + interval '60 s') "
    "ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until "
    "WHERE bare_lease.until <= now() RETURNING token"
)
_POSTGRES_RELEASE = "UPDATE bare_lease SET until = now() WHERE name = %s AND token = %s"

_SQLITE_RACE = (
    "INSERT INTO bare_lease (name, token, until) VALUES (?, ?, unixepoch() + 60) "
    "ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until "
    "WHERE bare_lease.until <= unixepoch()"
)
_SQLITE_RELEASE = "UPDATE bare_lease SET until = 0 WHERE name = ? AND token = ?"

# MariaDB's upsert has no WHERE: one statement to win a row that is there, and the row is there.
_MARIADB_RACE = (
    "UPDATE bare_lease SET until = utc_timestamp(6) + interval 60 second, token = %s "
    "WHERE name = 'bare' AND until <= utc_timestamp(6)"
)
_MARIADB_RELEASE = "UPDATE bare_lease SET until = utc_timestamp(6) WHERE name = 'bare' AND token = %s"


@contextmanager
def postgres_contenders(url: str) -> Iterator[list[Contender]]:
    """One autocommit connection of psycopg, and Tickoff."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare_lease")
        connection.execute(_TABLE.format("timestamptz"))
        bare = Contender(BARE, _bare(connection.execute, _POSTGRES_RACE, _POSTGRES_RELEASE))
        yield from _beside_ours(url, bare, Contender(ADVISORY, _advisory(connection)))


@contextmanager
def sqlite_contenders(folder: Path) -> Iterator[list[Contender]]:
    """The standard library on a file in WAL mode, every commit on disk, and Tickoff on another file."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(_TABLE.format("integer"))
        bare = Contender(BARE, _bare(connection.execute, _SQLITE_RACE, _SQLITE_RELEASE))
        yield from _beside_ours(f"sqlite:///{folder}/tickoff.db", bare)
    finally:
        connection.close()


@contextmanager
def mariadb_contenders(url: str) -> Iterator[list[Contender]]:
    """One autocommit connection of PyMySQL, and Tickoff."""
    parts = urlsplit(url)
    options = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    connection = pymysql.connect(**options, database=parts.path.strip("/"), autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(_TABLE.format("datetime(6)"))
        cursor.execute("INSERT INTO bare_lease VALUES ('bare', '', utc_timestamp(6))")
        yield from _beside_ours(url, Contender(BARE, _bare_on_mariadb(cursor)))


def _beside_ours(url: str, *others: Contender) -> Iterator[list[Contender]]:
    jobs = Tickoff(url)
    try:
        yield [*others, Contender(OURS, our_lock(jobs))]
    finally:
        jobs.close()


def _bare(execute: Execute, race: str, release: str) -> Callable[[int], float]:
    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            token = secrets.token_hex(16)
            _expect_one(execute(race, ("bare", token)).rowcount)
            _expect_one(execute(release, ("bare", token)).rowcount)
        return perf_counter() - begun

    return run


def _advisory(connection: psycopg.Connection[Any]) -> Callable[[int], float]:
    """Kept by the session: nothing is written, and nothing is left when the session ends."""

    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            _expect_one(connection.execute(_TAKE, (1,)).rowcount)
            _expect_one(connection.execute(_GIVE_BACK, (1,)).rowcount)
        return perf_counter() - begun

    return run


_TAKE = "SELECT 1 WHERE pg_try_advisory_lock(%s)"
_GIVE_BACK = "SELECT 1 WHERE pg_advisory_unlock(%s)"


def _bare_on_mariadb(cursor: pymysql.cursors.Cursor) -> Callable[[int], float]:
    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            token = secrets.token_hex(16)
            _expect_one(cursor.execute(_MARIADB_RACE, (token,)))
            _expect_one(cursor.execute(_MARIADB_RELEASE, (token,)))
        return perf_counter() - begun

    return run


def _expect_one(rows: int) -> None:
    if rows != 1:
        raise RuntimeError(f"a bare statement changed {rows} rows, not 1")
