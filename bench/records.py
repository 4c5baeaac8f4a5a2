"""Records beside a bare claim-and-complete loop over the driver; exits 1 when a gate is missed.

The function does nothing, so what is measured is what Tickoff adds: its bookkeeping, and what overlapping
claims with the work takes off again. The long parts drain a large table on PostgreSQL, also while somebody
holds a snapshot open, compare it with a small one, and let many processes drain one.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import mariadb_server, postgres_server  # noqa: E402

from bench import on_drains, on_records, page, report  # noqa: E402
from bench.on_drains import Tenth  # noqa: E402
from bench.on_records import BARE, BARE_LARGE, OURS, OURS_ASYNC, OURS_BATCHED, Cost, Database  # noqa: E402
from bench.page import Gate  # noqa: E402
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
WORKED = 100_000
CLEAN = " 0 calls repeated, 0 deadlocks"

SETTINGS = (
    "PostgreSQL with fsync on, MariaDB flushing its log once a second, SQLite in WAL mode; the store of the "
    "leases in memory; all on the measuring machine, over loopback"
)


@dataclass(frozen=True)
class Told:
    """What a part found, in lines; whether a gate was missed."""

    lines: list[str]
    missed: bool = False
    gates: Sequence[Gate] = ()


Part = Callable[[Database, Namespace], Told]


def main() -> int:
    """Measure, print, and write where asked; the exit status."""
    options = _options()
    missed = False
    for part in options.parts:
        context = report.Context.of_now(" ".join(sys.argv[1:]), "bench/records.py")
        kind, measure = PARTS[part]
        with database(kind, options) as opened:
            told = measure(opened, options)
        print("\n".join(["", *told.lines]), flush=True)
        missed |= told.missed
        if options.write:
            report.rewrite_text(page.PAGE, part, context, told.lines)
            page.put_gates(page.PAGE, told.gates)
    print("\na gate was missed" if missed else "\nall gates met")
    return 1 if missed else 0


def gates(opened: Database, options: Namespace) -> Told:
    """All contenders in turns; their rules are gates."""
    return compare(opened, options, RULES)


def compared(opened: Database, options: Namespace) -> Told:
    """The same for information."""
    return compare(opened, options, [Rule(rule.of, rule.to) for rule in RULES])


def compare(opened: Database, options: Namespace, rules: list[Rule] | tuple[Rule, ...]) -> Told:
    """Rates, CPU time, and the ratios of the times, round by round."""
    times = take_turns(opened.contenders(), options.rounds, options.rows)
    section = Section("Records", times, rules)
    runs = opened.costs.runs
    lines = [_HEAD, *(_costs(label, runs[label], runs[BARE]) for label in times), ""]
    ratios = [report.ratio_text(verdict) for verdict in section.verdicts]
    missed = any(verdict.missed for verdict in section.verdicts)
    return Told(lines + ratios, missed, report.gates_of(section))


_HEAD = f"{'':40}{'records/s':>11}{'with start':>12}{'own CPU':>11}{'its CPU':>11}{'both':>7}"


def _costs(label: str, costs: list[Cost], bare: list[Cost]) -> str:
    """Medians; CPU time for a record: of our process, of the database's, of both beside the bare loop's."""
    rate = median(cost.records / cost.seconds for cost in costs)
    whole = median(1 / cost.whole for cost in costs)
    own, server = _cpu(costs)
    share = (own + server) / sum(_cpu(bare))
    return f"{label:40}{rate:11,.0f}{whole:12,.0f}{own:8.1f} µs{server:8.1f} µs{share:7.2f}"


def _cpu(costs: list[Cost]) -> list[float]:
    return [median(getattr(cost, who) / cost.records * 1e6 for cost in costs) for who in ("own", "server")]


def drained(opened: Database, options: Namespace) -> Told:
    """Whether rate and memory stay flat."""
    return _flat(f"{options.large:,} records", on_drains.drain(opened, options.large))


def beside_a_snapshot(opened: Database, options: Namespace) -> Told:
    """The same with a snapshot held open."""
    tenths = on_drains.drain_beside_a_snapshot(opened, options.large)
    return _flat(f"{options.large:,} records, a snapshot held open meanwhile", tenths)


def _flat(what: str, tenths: list[Tenth]) -> Told:
    rates = [tenth.rate for tenth in tenths]
    share, second = rates[-1] / rates[0], rates[-1] / rates[1]
    lines = [
        f"A drain of {what}; records/s, tenth by tenth:",
        "  " + ", ".join(f"{rate:,.0f}" for rate in rates),
        f"the last at {share:.2f} of the first (gate ≥ {LAST_TENTH}), {second:.2f} of the second",
        "memory after each: " + ", ".join(str(tenth.memory) for tenth in tenths) + " MiB",
    ]
    gate = Gate(
        f"A drain of {what}", f"last tenth ≥ {LAST_TENTH} of the first", f"{share:.2f}", share >= LAST_TENTH
    )
    return Told(lines, not gate.met, [gate])


def beside_a_small_one(opened: Database, options: Namespace) -> Told:
    """Whether a large table is as fast as a small one, in turns."""
    sizes = ((options.large, WORKED), (SMALL, SMALL))
    rates = [[on_drains.rate_beside(opened, *size) for size in sizes] for _ in range(3)]
    share = median(large / small for large, small in rates)
    line = (
        f"In a table of {options.large:,}, over its first {WORKED:,}: {share:.2f} of the rate in a table of "
        f"{SMALL:,} (gate ≥ {FLAT}), median of three turns"
    )
    gate = Gate(
        f"A table of {options.large:,}", f"rate ≥ {FLAT} of a small one's", f"{share:.2f}", share >= FLAT
    )
    return Told([line], not gate.met, [gate])


def fleet(opened: Database, options: Namespace) -> Told:
    """Many processes at one table."""
    told = on_drains.fleet(opened, options.rows * 5, options.processes)
    return Told([told], not told.endswith(CLEAN))


PARTS: dict[str, tuple[str, Part]] = {
    "postgres": ("postgres", gates),
    "sqlite": ("sqlite", compared),
    "mariadb": ("mariadb", compared),
    "drain": ("postgres", drained),
    "snapshot": ("postgres", beside_a_snapshot),
    "sizes": ("postgres", beside_a_small_one),
    "fleet": ("postgres", fleet),
}


@contextmanager
def database(kind: str, options: Namespace) -> Iterator[Database]:
    """A database of our own, with every commit on disk."""
    if kind == "postgres":
        with postgres_server("max_wal_size=4GB", "shared_buffers=512MB", fsync=True) as server:
            opened = on_records.Postgres(server.url, server.process.pid)
            opened.fillfactor = options.fillfactor
            yield opened
    elif kind == "mariadb":
        with mariadb_server() as server:
            yield on_records.MariaDB(server.url, server.process.pid)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield on_records.SQLite(f"sqlite:///{folder}/bench.db")


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=["postgres", "sqlite", "mariadb"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=40_000, help="records per contender and round")
    parser.add_argument("--large", type=int, default=5_000_000, metavar="ROWS", help="of the large table")
    parser.add_argument("--processes", type=int, default=8, help="that drain together")
    parser.add_argument("--fillfactor", type=int, default=100, help="of the table on PostgreSQL")
    parser.add_argument("--write", action="store_true", help="rewrite the figures in docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
