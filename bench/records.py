"""Records beside a bare claim-and-complete loop over the driver; exits 1 when a gate is missed.

The function does nothing, so what is measured is what Tickoff adds: its bookkeeping, and what overlapping
claims with the work takes off again. `--drain` and `--fleet` also drain a large table on PostgreSQL, by one
process and by many, and watch rate, memory, repeated calls and deadlocks.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import mariadb_server, postgres_server  # noqa: E402

from bench import on_drains, on_records, report  # noqa: E402
from bench.on_records import BARE, BARE_LARGE, OURS, OURS_ASYNC, OURS_BATCHED, Database  # noqa: E402
from bench.ratios import Rule, Section, take_turns  # noqa: E402

GATE, GATE_BATCHED = 1 / 0.5, 1 / 0.7
"""Seconds per record beside those of the bare loop: half its rate per record, seven tenths in batches."""

RULES = (
    Rule(OURS, BARE, GATE),
    Rule(OURS_ASYNC, BARE, GATE),
    Rule(OURS_BATCHED, BARE, GATE_BATCHED),
    Rule(OURS_BATCHED, BARE_LARGE),
)


FLAT, LAST_TENTH = 0.75, 0.9
"""Of the rate in a small table and of the first tenth's rate: what a large table and the last tenth keep."""

SMALL = 10_000

SETTINGS = (
    "PostgreSQL with fsync on, MariaDB flushing its log once a second, SQLite in WAL mode; the store of the "
    "leases in memory; all on the measuring machine, over loopback; a figure in ms is for one record"
)


def main() -> int:
    """Measure, print, and write where asked; the exit status."""
    options = _options()
    context = replace(report.Context.of_now(" ".join(sys.argv[1:]), "bench/records.py"), settings=SETTINGS)
    sections: list[Section] = []
    for kind in options.only or ("postgres", "sqlite", "mariadb"):
        with database(kind) as opened:
            sections.append(compare(kind, opened, options))
            if kind == "postgres":
                sections += long_runs(opened, options)
    if options.write:
        report.rewrite(ROOT / "docs" / "performance.md", context, sections)
    missed = [line for section in sections for line in report.misses(section)]
    print("\n".join(["", *missed] if missed else ["", "all gates met"]))
    return 1 if missed else 0


def compare(kind: str, opened: Database, options: Namespace) -> Section:
    """All contenders in turns. Only PostgreSQL's rules are gates."""
    rules = RULES if kind == "postgres" else [Rule(rule.of, rule.to) for rule in RULES]
    times = take_turns(opened.contenders(), options.rounds, options.rows)
    section = Section(f"Records on {kind}", times, rules)
    print(report.as_text(section), flush=True)
    for label, spent in times.items():
        print(f"  {label}: {1 / median(spent):,.0f} records/s", flush=True)
    return section


def long_runs(opened: Database, options: Namespace) -> list[Section]:
    """A large table drained by one worker, and by many."""
    sections = []
    if options.drain:
        sections += [drained(opened, options.drain), beside(opened, options.drain)]
    if options.fleet:
        told = on_drains.fleet(opened, options.rows * 5, options.fleet)
        sections.append(_told("Records on postgres, many processes", told, spoilt=not told.endswith(CLEAN)))
    return sections


CLEAN = " 0 calls repeated, 0 deadlocks"


def drained(opened: Database, rows: int) -> Section:
    """Whether rate and memory stay flat."""
    tenths = on_drains.drain(opened, rows)
    share = tenths[-1].rate / tenths[0].rate
    rates = ", ".join(f"{tenth.rate:,.0f}" for tenth in tenths)
    memory = ", ".join(str(tenth.memory) for tenth in tenths)
    told = (
        f"{rates} records/s, tenth by tenth, the last at {share:.2f} of the first's rate "
        f"(gate ≥ {LAST_TENTH}); memory after each: {memory} MiB"
    )
    return _told(f"A drain of {rows:,} records on postgres", told, spoilt=share < LAST_TENTH)


def beside(opened: Database, rows: int) -> Section:
    """Whether a large table is as fast as a small one, in turns."""
    sizes = ((rows, SMALL * 10), (SMALL, SMALL))
    rates = [[on_drains.rate_beside(opened, *size) for size in sizes] for _ in range(3)]
    share = median(large / small for large, small in rates)
    told = f"{share:.2f} of the rate in a table of {SMALL:,} (gate ≥ {FLAT}), over its first {SMALL * 10:,}"
    return _told(f"Records in a table of {rows:,} on postgres", told, spoilt=share < FLAT)


def _told(title: str, told: str, *, spoilt: bool) -> Section:
    print(f"\n{title}: {told}{' MISSED' if spoilt else ''}", flush=True)
    return Section(title, {}, (), f"{told}{' **missed**' if spoilt else ''}", spoilt)


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
    parser.add_argument("--drain", type=int, metavar="ROWS", help="also drain so many rows")
    parser.add_argument("--fleet", type=int, metavar="N", help="also drain with so many processes")
    parser.add_argument("--write", action="store_true", help="rewrite the figures in docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
