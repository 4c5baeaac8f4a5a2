"""Rows upserted by Tickoff beside the driver's own bulk statements; exits 1 when the gate is missed.

A cycle writes all rows three times: new, the same again, and every one changed. The gate: at least 0.8 of
the rate of the driver's bulk statement, so at most 1.25 of its time.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import mariadb_server, postgres_server  # noqa: E402

from bench import on_tables, report  # noqa: E402
from bench.ratios import Contender, Rule, Section, take_turns  # noqa: E402

LIMIT = 1 / 0.8


def main() -> int:
    """Measure, print, write where asked; the exit status."""
    options = _options()
    context = report.Context.of_now(
        f"--rounds {options.rounds} --rows {options.rows}", script="bench/upsert.py"
    )
    sections = []
    for section in _measured(options):
        print(report.as_text(section), flush=True)
        sections.append(section)
    if options.write:
        report.rewrite(ROOT / "docs" / "writes.md", context, sections)
    missed = [line for section in sections for line in report.misses(section)]
    print("\n".join(missed) if missed else "all gates met")
    return 1 if missed else 0


def _measured(options: Namespace) -> Iterator[Section]:
    many = Rule(on_tables.OURS, on_tables.MANY, LIMIT)
    with postgres_server(fsync=True) as server:
        arrays = Rule(on_tables.OURS, on_tables.ARRAYS, LIMIT)
        contenders = on_tables.postgres_contenders(server.url, options.rows)
        yield _section(options, "PostgreSQL", contenders, [many, arrays])
    with mariadb_server() as server:
        contenders = on_tables.mariadb_contenders(server.url, options.rows)
        yield _section(options, "MariaDB", contenders, [many])
    with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
        contenders = on_tables.sqlite_contenders(Path(folder), options.rows)
        yield _section(options, "SQLite", contenders, [many])


def _section(
    options: Namespace, title: str, contenders: AbstractContextManager[list[Contender]], rules: list[Rule]
) -> Section:
    with contenders as listed:
        return Section(title, take_turns(listed, options.rounds, 2), rules)


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="bench/upsert.py")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which all contenders take turns (3)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows written three times a cycle (100000)")
    parser.add_argument("--write", action="store_true", help="rewrite the tables in docs/writes.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
