"""Records beside a bare claim-and-complete loop over the driver; exits 1 when a gate is missed.

The function does nothing, so what is measured is what Tickoff adds: its bookkeeping, and what overlapping
claims with the work takes off again. `--flat ROWS` measures instead whether rate and memory stay flat.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import mariadb_server, postgres_server  # noqa: E402

from bench import on_records, report  # noqa: E402
from bench.on_records import BARE, BARE_LARGE, OURS, OURS_ASYNC, OURS_BATCHED, Database  # noqa: E402
from bench.ratios import Rule, Section, take_turns  # noqa: E402
from tickoff import Tickoff  # noqa: E402

GATE, GATE_BATCHED = 1 / 0.5, 1 / 0.7
"""Seconds per record beside those of the bare loop: half its rate per record, seven tenths in batches."""

RULES = (
    Rule(OURS, BARE, GATE),
    Rule(OURS_ASYNC, BARE, GATE),
    Rule(OURS_BATCHED, BARE, GATE_BATCHED),
    Rule(OURS_BATCHED, BARE_LARGE, GATE_BATCHED),
)


def main() -> int:
    """Measure, print; the exit status."""
    options = _options()
    for kind in options.only or ("postgres", "sqlite", "mariadb"):
        with database(kind) as opened:
            if options.flat:
                flat(kind, opened, options.flat)
            elif not compare(kind, opened, options):
                options.missed = True
    return 1 if options.missed else 0


def compare(kind: str, opened: Database, options: Namespace) -> bool:
    """All contenders in turns; whether the gates are met. Only PostgreSQL's are gates."""
    rules = RULES if kind == "postgres" else [Rule(rule.of, rule.to) for rule in RULES]
    section = Section(
        f"Records on {kind}", take_turns(opened.contenders(), options.rounds, options.rows), rules
    )
    print(report.as_text(section))
    for label, times in section.times.items():
        print(f"  {label}: {1 / sorted(times)[len(times) // 2]:,.0f} records/s")
    return not report.misses(section)


def flat(kind: str, opened: Database, rows: int) -> None:
    """Drain so many rows: the rate of each tenth, and the memory of the process after it."""
    opened.run("DROP TABLE IF EXISTS bench_contacts")
    opened.run("CREATE TABLE bench_contacts (id bigint PRIMARY KEY, phone varchar(20), answer varchar(20))")
    opened.fill(rows)
    jobs = Tickoff("memory://", database=opened.url)
    jobs.each("bench_contacts", status="status", result="answer", name="bench")(on_records._answer)
    with jobs.records("bench") as records:
        records.table.install()
        worker = records.worker()
        worker.start()
        print(f"\n{kind}, {rows:,} rows: records/s and peak memory of the process, tenth by tenth")
        for tenth in range(1, 11):
            begun, before = time.perf_counter(), worker.report.counts.done
            while worker.report.counts.done < rows * tenth // 10:
                time.sleep(0.005)
            did, spent = worker.report.counts.done - before, time.perf_counter() - begun
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"  {tenth:2}  {did / max(spent, 1e-6):10,.0f}/s  {peak:5} MiB", flush=True)
        worker.stop()
    jobs.close()


@contextmanager
def database(kind: str) -> Iterator[Database]:
    """A database of our own, with every commit on disk."""
    if kind == "postgres":
        with postgres_server("max_wal_size=4GB", "shared_buffers=512MB", fsync=True) as server:
            yield on_records.Postgres(server.url)
    elif kind == "mariadb":
        with mariadb_server() as server:
            yield on_records.MariaDB(server.url)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield on_records.SQLite(f"sqlite:///{folder}/bench.db")


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=40_000, help="records per contender and round")
    parser.add_argument("--only", nargs="*", choices=["postgres", "sqlite", "mariadb"])
    parser.add_argument(
        "--flat", type=int, metavar="ROWS", help="drain so many rows, and watch rate and memory"
    )
    parser.set_defaults(missed=False)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
