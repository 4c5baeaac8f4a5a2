"""Records, the I/O layer alone: claim and settle beside the same steps by hand; whether rates stay flat."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dev.servers import mariadb_server, postgres_server

from bench import bare_records
from bench.bare_records import Cycle
from bench.ratios import Contender, Rule, ratio, take_turns
from tickoff.names import new_token
from tickoff.stores.sql.engines import database_of
from tickoff.tables import open_table
from tickoff.tables.base import Done, Key, Plan

OURS, BARE = "tickoff", "by hand"
GATE = 1 / 0.7
"""Seconds by hand times this is what we may take."""


def main() -> int:
    """Measure, print, and judge the gate on PostgreSQL."""
    options = _options()
    missed = False
    with postgres_server("shared_buffers=512MB", "max_wal_size=4GB", fsync=True) as server:
        for size in options.sizes:
            missed |= compare("PostgreSQL", server.url, size, options) > GATE
        flat(server.url, options)
    with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
        compare("SQLite", f"sqlite:///{folder}/shop.db", options.sizes[-1], options)
    if not options.quick:
        with mariadb_server() as server:
            compare("MariaDB", server.url, options.sizes[-1], options)
    print("gate missed: below 0.7 of the loop by hand" if missed else "gate met")
    return 1 if missed else 0


def compare(title: str, url: str, size: int, options: Namespace) -> float:
    """Both take turns on tables of their own; the ratio of the times."""
    rows = (options.rounds + 2) * (options.cycles + 1) * size
    engine = database_of(url).open(60.0)
    for table in ("ours", "bare"):
        fill(engine, f"{table}_{size}", rows)
    by_hand(engine, f"bare_{size}")
    bare = (
        bare_records.on_postgres(url, f"bare_{size}", size)
        if title == "PostgreSQL"
        else bare_records.on_others(engine, f"bare_{size}", size)
    )
    contenders = [Contender(OURS, timed(ours(url, f"ours_{size}", size))), Contender(BARE, timed(bare))]
    times = take_turns(contenders, options.rounds, options.cycles)
    spread = ratio(times, Rule(OURS, BARE))
    rates = ", ".join(f"{label} {size / median(seconds):,.0f}/s" for label, seconds in times.items())
    shares = f"{1 / spread.median:.2f} of it (quartiles {1 / spread.high:.2f} to {1 / spread.low:.2f})"
    print(f"{title}, batches of {size}: {rates}; {shares}", flush=True)
    return spread.median


def flat(url: str, options: Namespace) -> None:
    """Batches in the middle of a big table beside a small one; drains, also under a foreign snapshot."""
    size, engine = options.sizes[-1], database_of(url).open(60.0)
    big, small = ("big", options.big), ("small", (options.rounds + 2) * (options.cycles + 1) * size)
    contenders = []
    for name, rows in (big, small):
        fill(engine, name, rows)
        floor = (rows // 2,) if rows == options.big else None
        contenders.append(Contender(name, timed(ours(url, name, size, floor))))
    times = take_turns(contenders, options.rounds, options.cycles)
    share = 1 / ratio(times, Rule("big", "small")).median
    print(
        f"PostgreSQL: rate in the middle of {options.big:,} rows is {share:.2f} of a small table's",
        flush=True,
    )
    for held in (False, True):
        fill(engine, "drained", options.drain)
        with engine.connect() as foreign:
            if held:
                foreign.exec_driver_sql(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tickoff_claim"
                )
            first, last = drain(ours(url, "drained", size), options.drain // size)
            foreign.exec_driver_sql("ROLLBACK") if held else None
        snapshot = "a foreign snapshot open" if held else "alone"
        share = f"last tenth at {first / last:.2f} of the first's rate"
        print(f"PostgreSQL, a drain of {options.drain:,}, {snapshot}: {share}")


def drain(cycle: Cycle, batches: int) -> tuple[float, float]:
    """Seconds of the first and the last tenth."""
    tenth = batches // 10
    parts = [timed(cycle)(tenth) for _ in range(10)]
    return parts[0], parts[-1]


def ours(url: str, table: str, size: int, floor: Key | None = None) -> Cycle:
    """Our claim and our settling of one batch."""
    records = open_table(url, Plan(table, "status", result=("answer",)))
    records.install()
    records.check()

    def cycle() -> int:
        nonlocal floor
        batch = records.claim(new_token(), "bench", size, 60.0, floor)
        floor = batch.records[-1].key
        verdicts = [Done(record.key, {"answer": "ok"}) for record in batch.records]
        assert len(records.settle(batch.token, verdicts, last=True).written) == size
        return size

    return cycle


def timed(cycle: Cycle) -> Callable[[int], float]:
    """Seconds for so many cycles."""

    def run(cycles: int) -> float:
        start = perf_counter()
        for _ in range(cycles):
            cycle()
        return perf_counter() - start

    return run


def fill(engine: sa.Engine, table: str, rows: int) -> None:
    """A fresh table with so many rows."""
    kind = "bigint" if engine.dialect.name != "sqlite" else "integer"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
        connection.exec_driver_sql(
            f"CREATE TABLE {table} (id {kind} PRIMARY KEY, phone varchar(20), answer varchar(50))"
        )
        for statement in _filling(engine.dialect.name, table, rows):
            connection.exec_driver_sql(statement)


def _filling(dialect: str, table: str, rows: int) -> Iterator[str]:
    match dialect:
        case "postgresql":
            yield f"INSERT INTO {table} SELECT g, 'p' || g, NULL FROM generate_series(1, {rows}) g"
            yield f"VACUUM ANALYZE {table}"
        case "sqlite":
            numbers = f"WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {rows})"
            yield f"{numbers} INSERT INTO {table} SELECT i, 'p' || i, NULL FROM g"
        case _:
            yield f"INSERT INTO {table} SELECT seq, concat('p', seq), NULL FROM seq_1_to_{rows}"


def by_hand(engine: sa.Engine, table: str) -> None:
    """The columns of the loop by hand."""
    moment = {"postgresql": "timestamptz", "sqlite": "text"}.get(engine.dialect.name, "datetime(6)")
    columns = ("status varchar(20) NOT NULL DEFAULT 'PENDING'", "claim varchar(72)", f"until {moment}")
    with engine.connect() as connection:
        for column in columns:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="bench/records_tables.py")
    parser.add_argument("--rounds", type=int, default=15, help="rounds in which both take turns (15)")
    parser.add_argument("--cycles", type=int, default=8, help="batches per round (8)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500], help="batch sizes (100 500)")
    parser.add_argument("--big", type=int, default=5_000_000, help="rows of the big table (5,000,000)")
    parser.add_argument("--drain", type=int, default=500_000, help="rows of the drain (500,000)")
    parser.add_argument("--quick", action="store_true", help="small tables, no MariaDB")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.cycles, options.big, options.drain = 7, 4, 300_000, 50_000
    return options


if __name__ == "__main__":
    sys.exit(main())
