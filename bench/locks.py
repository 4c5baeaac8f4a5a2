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

from bench import contention, on_redis, on_sql, page, report  # noqa: E402
from bench.delay import Delayed, delayed_redis  # noqa: E402
from bench.ratios import Contender, Rule, Section, take_turns  # noqa: E402

OURS = on_redis.OURS
_LEVEL = 1.1
"""What "level" is taken to mean."""

_FASTER = 10.0
"""How many more cycles fit where nothing waits for a disk or a network."""

Contenders = AbstractContextManager[list[Contender]]


def main() -> int:
    """Measure, print, write where asked; the exit status."""
    options = _options()
    found = [section for part in options.only or _PARTS for section in _measured(part, options)]
    missed = [line for section in found for line in report.misses(section)]
    print("\n".join(missed) if missed else "all gates met")
    return 1 if missed else 0


def _measured(part: str, options: Namespace) -> list[Section]:
    """The sections of a part; each part has a block of the page to itself."""
    told = f"--only {part} --rounds {options.rounds} --cycles {options.cycles}"
    context = report.Context.of_now(told)
    sections = []
    for section in _PARTS[part](options):
        print(report.as_text(section), flush=True)
        sections.append(section)
    if options.write:
        report.rewrite(page.PAGE, context, sections, part)
    return sections


def _on_redis(options: Namespace) -> Iterator[Section]:
    with redis_server() as server:
        blocking = [Rule(OURS, on_redis.BY_HAND, 1.3), Rule(OURS, on_redis.THEIR_LOCK, _LEVEL)]
        blocking.append(Rule(OURS, on_redis.OTHER_LOCK))
        yield _section(options, "Redis", on_redis.sync_contenders(server.url), blocking, _FASTER)
        beside_loop = [Rule(OURS, on_redis.BY_HAND), Rule(OURS, on_redis.THEIR_LOCK, 1.8)]
        contenders = on_redis.async_contenders(server.url)
        yield _section(options, "Redis, asyncio", contenders, beside_loop, _FASTER)
        yield _contended(server.url, max(3, options.rounds // 2))


def _contended(url: str, rounds: int) -> Section:
    fight = contention.fight(url, rounds)
    racers = contention.PROCESSES * contention.THREADS
    title = f"Redis, {racers} racers for one name, per attempt"
    won = "; ".join(fight.spoilt) or "Exactly one winner in every round."
    return Section(title, fight.times, [Rule(contention.OURS, contention.BARE)], won, bool(fight.spoilt))


def _over_a_network(options: Namespace) -> Iterator[Section]:
    """Two distances; the gate is for the nearer one, where a thread's hop still shows."""
    with redis_server() as server:
        for trip, limit in ((0.0005, 1.2), (0.005, None)):
            with delayed_redis(server.port, trip) as delayed:
                yield from _from_afar(options, delayed, f"{trip * 1000:g} ms a trip", limit)


def _from_afar(options: Namespace, delayed: Delayed, away: str, limit: float | None) -> Iterator[Section]:
    url = f"redis://127.0.0.1:{delayed.port}/0"
    added = (delayed.through - delayed.direct) * 1000
    note = f"A PING takes {added:.2f} ms longer through the forwarder than without it."
    blocking = [Rule(OURS, other) for other in (on_redis.BY_HAND, on_redis.THEIR_LOCK, on_redis.OTHER_LOCK)]
    yield _section(options, f"Redis, {away}", on_redis.sync_contenders(url), blocking, note=note)
    beside_loop = [Rule(OURS, on_redis.BY_HAND), Rule(OURS, on_redis.THEIR_LOCK, limit)]
    yield _section(options, f"Redis, asyncio, {away}", on_redis.async_contenders(url), beside_loop, note=note)


def _on_databases(options: Namespace) -> Iterator[Section]:
    beside_advisory = Rule(OURS, on_sql.ADVISORY)
    with postgres_server(fsync=True) as server:
        gated = [Rule(OURS, on_sql.BARE, 1.3), beside_advisory]
        yield _section(options, "PostgreSQL", on_sql.postgres_contenders(server.url), gated)
        relaxed = f"{server.url}?options=-c%20synchronous_commit%3Doff"
        contenders = on_sql.postgres_contenders(relaxed)
        shown = [Rule(OURS, on_sql.BARE), beside_advisory]
        yield _section(options, "PostgreSQL, synchronous_commit off", contenders, shown)
    with tempfile.TemporaryDirectory(prefix="tickoff-bench-") as folder:
        contenders = on_sql.sqlite_contenders(Path(folder))
        yield _section(options, "SQLite", contenders, [Rule(OURS, on_sql.BARE)])
    with mariadb_server() as server:
        contenders = on_sql.mariadb_contenders(server.url)
        yield _section(options, "MariaDB", contenders, [Rule(OURS, on_sql.BARE)])


_PARTS = {"redis": _on_redis, "network": _over_a_network, "databases": _on_databases}


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


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="bench/locks.py")
    parser.add_argument("--only", nargs="+", choices=_PARTS, help="parts to measure; all by default")
    parser.add_argument("--rounds", type=int, help="rounds in which all contenders take turns (60)")
    parser.add_argument("--cycles", type=int, help="cycles per round; ten times that on loopback Redis (20)")
    parser.add_argument("--quick", action="store_true", help="a few seconds: 11 rounds of 6")
    parser.add_argument("--write", action="store_true", help="rewrite the tables in docs/performance.md")
    options = parser.parse_args()
    options.rounds = options.rounds or (11 if options.quick else 60)
    options.cycles = options.cycles or (6 if options.quick else 20)
    return options


if __name__ == "__main__":
    sys.exit(main())
