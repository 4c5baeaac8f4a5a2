"""Lock cycles (race + release) beside what one would write without Tickoff; exits 1 when a gate is missed.

Everything compared is measured in the same run, in turns, and judged by the median of the ratios between
neighbouring measurements: the machine's mood of the day changes both.
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

from dev.servers import mariadb_server, postgres_server, redis_server  # noqa: E402

from bench import contention, on_redis, on_sql, report  # noqa: E402
from bench.delay import delayed_redis  # noqa: E402
from bench.ratios import Contender, Rule, Section, take_turns  # noqa: E402

OURS = on_redis.OURS
TRIP = 0.0005
"""Seconds by which the delaying forwarder makes a round trip longer."""

_LEVEL = 1.1
"""What "level" is taken to mean."""

_FASTER = 10.0
"""How many more cycles fit where nothing waits for a disk or a network."""

Contenders = AbstractContextManager[list[Contender]]


def main() -> int:
    """Measure, print, write where asked; the exit status."""
    options = _options()
    context = report.Context.of_now(
        f"--rounds {options.rounds} --cycles {options.cycles}" + " --quick" * options.quick
    )
    sections = []
    for section in _measured(options):
        print(report.as_text(section), flush=True)
        sections.append(section)
    if options.json:
        options.json.write_text(report.as_json(context, sections))
    if options.write:
        report.rewrite(ROOT / "docs" / "performance.md", context, sections)
    return _judge(sections)


def _measured(options: Namespace) -> Iterator[Section]:
    with redis_server() as server:
        yield from _on_redis(options, server.url, server.port)
    with postgres_server(fsync=True) as server:
        yield from _on_postgres(options, server.url)
    yield _on_sqlite(options)
    if not options.quick:
        with mariadb_server() as server:
            contenders = on_sql.mariadb_contenders(server.url)
            yield _section(options, "MariaDB (for information)", contenders, [Rule(OURS, on_sql.BARE)])


def _on_redis(options: Namespace, url: str, port: int) -> Iterator[Section]:
    blocking = [Rule(OURS, on_redis.BY_HAND, 1.3), Rule(OURS, on_redis.THEIR_LOCK, _LEVEL)]
    yield _section(options, "Redis", on_redis.sync_contenders(url), blocking, _FASTER)
    beside_loop = [Rule(OURS, on_redis.BY_HAND), Rule(OURS, on_redis.THEIR_LOCK, 1.8)]
    yield _section(options, "Redis, asyncio", on_redis.async_contenders(url), beside_loop, _FASTER)
    far = [Rule(OURS, on_redis.BY_HAND), Rule(OURS, on_redis.THEIR_LOCK, 1.2)]
    with delayed_redis(port, TRIP) as delayed:
        contenders = on_redis.async_contenders(f"redis://127.0.0.1:{delayed.port}/0")
        added = (delayed.through - delayed.direct) * 1000
        note = f"A PING takes {added:.2f} ms longer through the forwarder than without it."
        yield _section(options, "Redis, asyncio, 0.5 ms a trip", contenders, far, note=note)
    fight = contention.fight(url, max(3, options.rounds // 2))
    racers = contention.PROCESSES * contention.THREADS
    title = f"Redis, {racers} racers for one name, per attempt"
    won = "; ".join(fight.spoilt) or "Exactly one winner in every round."
    yield Section(title, fight.times, [Rule(contention.OURS, contention.BARE)], won, bool(fight.spoilt))


def _on_postgres(options: Namespace, url: str) -> Iterator[Section]:
    gated, shown = [Rule(OURS, on_sql.BARE, 1.3)], [Rule(OURS, on_sql.BARE)]
    yield _section(options, "PostgreSQL", on_sql.postgres_contenders(url), gated)
    relaxed = f"{url}?options=-c%20synchronous_commit%3Doff"
    title = "PostgreSQL, synchronous_commit off (for information)"
    yield _section(options, title, on_sql.postgres_contenders(relaxed), shown)


def _on_sqlite(options: Namespace) -> Section:
    with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
        contenders = on_sql.sqlite_contenders(Path(folder))
        return _section(options, "SQLite (for information)", contenders, [Rule(OURS, on_sql.BARE)])


def _section(
    options: Namespace,
    title: str,
    contenders: Contenders,
    rules: list[Rule],
    factor: float = 1.0,
    note: str = "",
) -> Section:
    with contenders as listed:
        times = take_turns(listed, options.rounds, max(2, int(options.cycles * factor)))
    return Section(title, times, rules, note)


def _judge(sections: list[Section]) -> int:
    missed = [line for section in sections for line in report.misses(section)]
    print("\n".join(missed) if missed else "all gates met")
    return 1 if missed else 0


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="bench/locks.py")
    parser.add_argument("--rounds", type=int, help="rounds in which all contenders take turns (60)")
    parser.add_argument("--cycles", type=int, help="cycles per round; ten times that on loopback Redis (20)")
    parser.add_argument("--quick", action="store_true", help="a few seconds: 11 rounds of 6, no MariaDB")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures there")
    parser.add_argument("--write", action="store_true", help="rewrite the tables in docs/performance.md")
    options = parser.parse_args()
    options.rounds = options.rounds or (11 if options.quick else 60)
    options.cycles = options.cycles or (6 if options.quick else 20)
    return options


if __name__ == "__main__":
    sys.exit(main())
