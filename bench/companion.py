"""A companion beside a large table, drained next to one that keeps its states itself, and looked at then."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dev.servers import mariadb_server, postgres_server

from bench.records_tables import fill
from tickoff.names import new_token
from tickoff.stores.sql.engines import database_of
from tickoff.tables import open_table
from tickoff.tables.base import Done, Key, Plan, RecordTable

SIZE = 500
"""Records in a claim."""


def main() -> int:
    """Measure the databases that were asked for."""
    options = _options()
    if "postgres" in options.databases:
        with postgres_server("shared_buffers=512MB", "max_wal_size=4GB", fsync=True) as server:
            measure("PostgreSQL", server.url, options)
    if "sqlite" in options.databases:
        with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
            measure("SQLite", f"sqlite:///{folder}/shop.db", options)
    if "mariadb" in options.databases:
        with mariadb_server() as server:
            measure("MariaDB", server.url, options)
    return 0


def measure(title: str, url: str, options: Namespace) -> None:
    """Drain both, and look at the one with the companion."""
    engine = database_of(url).open(120.0)
    rates = {}
    for table, plan in _plans().items():
        fill(engine, table, options.rows)
        records = open_table(url, plan, 120.0)
        records.install()
        tenths, floor = drain(records, plan, options.rows)
        rates[table] = options.rows / sum(tenths)
        said = (
            f"{rates[table]:,.0f} records/s, last tenth at {tenths[0] / tenths[-1]:.2f} of the first's rate"
        )
        print(f"{title}, {options.rows:,} rows, states {table}: {said}", flush=True)
    print(f"{title}: beside at {rates['beside'] / rates['within']:.2f} of within")
    look(title, records, floor)


def _plans() -> dict[str, Plan]:
    return {
        "within": Plan("within", "status", result=("answer",), columns=("phone",)),
        "beside": Plan("beside", "status", result=("reply",), columns=("phone",), companion="beside_kept"),
    }


def drain(records: RecordTable, plan: Plan, rows: int) -> tuple[list[float], Key | None]:
    """Seconds of each tenth, and the last key."""
    tenths: list[float] = []
    floor: Key | None = None
    for _ in range(10):
        begun = perf_counter()
        for _ in range(rows // 10 // SIZE):
            batch = records.claim(new_token(), "bench", SIZE, 60.0, floor)
            floor = batch.records[-1].key
            (column,) = plan.result
            verdicts = [Done(record.key, {column: "ok"}) for record in batch.records]
            assert len(records.settle(batch.token, verdicts, last=True).written) == SIZE
        tenths.append(perf_counter() - begun)
    return tenths, floor


def look(title: str, records: RecordTable, floor: Key | None) -> None:
    """What is asked of a table in which all is done."""
    asked: dict[str, Callable[[], Any]] = {
        "a claim at the end": lambda: records.claim(new_token(), "bench", SIZE, 60.0, floor),
        "a claim from the beginning": lambda: records.claim(new_token(), "bench", SIZE, 60.0),
        "what is left": records.left,
        "a full count": records.counts,
        "a count of changed rows": records.changed,
    }
    for name, ask in asked.items():
        print(f"{title}, all done: {name} takes {best(ask) * 1000:,.1f} ms", flush=True)


def best(ask: Callable[[], Any]) -> float:
    """Seconds, of three tries."""
    tries = []
    for _ in range(3):
        begun = perf_counter()
        ask()
        tries.append(perf_counter() - begun)
    return min(tries)


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="bench/companion.py")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each table (1,000,000)")
    parser.add_argument("--databases", nargs="+", default=["postgres", "sqlite", "mariadb"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
