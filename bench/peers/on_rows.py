"""A user's own table, worked by hand: one row a transaction, batch by batch, or all rows by one statement."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa

from bench import bare_records
from bench.peers import gate
from bench.peers.program import url
from tickoff.stores.sql.engines import database_of

TABLE = "bench_contacts"
_PICK = (
    f"SELECT id, phone FROM {TABLE} WHERE status = 'PENDING' AND id > {{mark}} ORDER BY id LIMIT 1{{lock}}"
)
_DONE = f"UPDATE {TABLE} SET status = 'DONE', answer = {{mark}} WHERE id = {{mark}}"
_AT_ONCE = f"UPDATE {TABLE} SET status = 'DONE', answer = 'ok' WHERE status = 'PENDING'"


def fill(count: str, *, bare: bool = True) -> None:
    """The table made anew, with so many rows that are pending; not bare: without columns of ours."""
    engine = _engine()
    dialect = engine.dialect.name
    numbers = _NUMBERS[dialect].format(count=count)
    own = _BARE + _INSTANTS[dialect] if bare else ""
    key = "integer" if dialect == "sqlite" else "bigint"
    concat = "'p' || i" if dialect != "mysql" else "concat('p', i)"
    with engine.connect() as connection:
        execute = connection.exec_driver_sql
        execute(f"DROP TABLE IF EXISTS {TABLE}")
        execute(f"CREATE TABLE {TABLE} (id {key} PRIMARY KEY, phone varchar(20), answer varchar(50){own})")
        execute(f"INSERT INTO {TABLE} (id, phone) SELECT i, {concat} FROM {numbers}")
        if dialect == "postgresql":
            execute(f"VACUUM ANALYZE {TABLE}")
    engine.dispose()


def naive() -> None:
    """What most people write first: pick a row nobody has locked, work it, mark it, commit."""
    engine = _engine()
    cursor: Any = engine.raw_connection().cursor()
    lite = engine.dialect.name == "sqlite"
    begin, mark = ("BEGIN IMMEDIATE", "?") if lite else ("BEGIN", "%s")
    pick = _PICK.format(mark=mark, lock="" if lite else " FOR UPDATE SKIP LOCKED")
    done, floor = _DONE.format(mark=mark), 0
    gate.wait()
    while floor is not None:
        cursor.execute(begin)
        cursor.execute(pick, (floor,))
        row = cursor.fetchone()
        if row is not None:
            cursor.execute(done, ("ok", row[0]))
        cursor.execute("COMMIT")
        floor = row and row[0]


def batched(size: str) -> None:
    """The limit of that design: claim a batch, complete it, with nothing else around."""
    engine = _engine()
    cycle = (
        bare_records.on_postgres(url(), TABLE, int(size))
        if engine.dialect.name == "postgresql"
        else bare_records.on_others(engine, TABLE, int(size))
    )
    gate.wait()
    while cycle():
        pass


def at_once() -> None:
    """The limit of the engine: all rows in one statement; prints its seconds."""
    with _engine().connect() as connection:
        begun = time.perf_counter()
        connection.exec_driver_sql(_AT_ONCE)
        print(time.perf_counter() - begun)


def _engine() -> sa.Engine:
    return database_of(url()).open(600.0)


_BARE = ", status varchar(20) NOT NULL DEFAULT 'PENDING', claim varchar(72), until "
_INSTANTS = {"postgresql": "timestamptz", "sqlite": "text", "mysql": "datetime(6)"}
_NUMBERS = {
    "postgresql": "generate_series(1, {count}) AS g(i)",
    "sqlite": (
        "(WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {count}) SELECT i FROM g)"
    ),
    "mysql": "(SELECT seq AS i FROM seq_1_to_{count}) AS g",
}
