"""A companion beside a large table, drained next to one that keeps its states itself, and looked at then."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dev.servers import mariadb_server, postgres_server

from bench import page, report
from bench.records_tables import fill
from tickoff.names import new_token
from tickoff.stores.sql.engines import database_of
from tickoff.tables import open_table
from tickoff.tables.base import Done, Key, Plan, RecordTable

SIZE = 500
"""Records in a claim."""


def main() -> int:
    """Measure the databases that were asked for, print, and write where asked."""
    options = _options()
    for kind in options.databases:
        context = report.Context.of_now(" ".join(sys.argv[1:]), "bench/companion.py")
        with url_of(kind) as url:
            lines = measure(url, options.rows)
        print("\n".join(["", kind, *lines]), flush=True)
        if options.write:
            report.rewrite_text(page.PAGE, kind, context, lines)
    return 0


@contextmanager
def url_of(kind: str) -> Iterator[str]:
    """A database of this kind, for as long as it is measured."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
            yield f"sqlite:///{folder}/shop.db"
    elif kind == "postgres":
        with postgres_server("shared_buffers=512MB", "max_wal_size=4GB", fsync=True) as server:
            yield server.url
    else:
        with mariadb_server() as server:
            yield server.url


def measure(url: str, rows: int) -> list[str]:
    """Drain both tables, and look at the one with the companion."""
    engine = database_of(url).open(120.0)
    rates: dict[str, float] = {}
    lines = []
    for table, plan in _plans().items():
        fill(engine, table, rows)
        records = open_table(url, plan, 120.0)
        records.install()
        tenths, floor = drain(records, plan, rows)
        rates[table] = rows / sum(tenths)
        last = f"last tenth at {tenths[0] / tenths[-1]:.2f} of the first's rate"
        lines.append(f"{rows:,} rows, states {table}: {rates[table]:,.0f} records/s, {last}")
    lines.append(f"beside at {rates['beside'] / rates['within']:.2f} of within")
    return lines + look(records, floor)


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


def look(records: RecordTable, floor: Key | None) -> list[str]:
    """What is asked of a table in which all is done."""
    asked: dict[str, Callable[[], Any]] = {
        "a claim at the end": lambda: records.claim(new_token(), "bench", SIZE, 60.0, floor),
        "a claim from the beginning": lambda: records.claim(new_token(), "bench", SIZE, 60.0),
        "what is left": records.left,
        "a full count": records.counts,
        "a count of changed rows": records.changed,
    }
    return [f"all done: {name} takes {best(ask) * 1000:,.1f} ms" for name, ask in asked.items()]


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
    parser.add_argument("databases", nargs="*", default=["postgres", "sqlite", "mariadb"])
    parser.add_argument("--write", action="store_true", help="put the figures into docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
