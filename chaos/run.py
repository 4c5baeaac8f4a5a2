"""One run: faults, then calm, then the histories against the promises."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from tickoff.testing import checker
from tickoff.testing.history import Line, Op, Said, lines_of, ops_of

from . import member
from .fleet import Fleet
from .ground import ground
from .nemesis import Nemesis, schedule
from .records import Records
from .stores import STORES, Store

SETTLING = 6.0
"""Seconds of calm before all must go well again: the longest back-off, and a lease or two…"""

CALM = 16.0
"""…and in which every job then must run, though not every tick: a busy machine may be late for one."""

PATIENCE = 30.0
"""Seconds without any record done, after which those that are left are stuck: many claims and sweeps."""

RATE = 30
"""Records there are for each second of faults: fewer than the members can work, more than they do."""


@dataclass
class Course:
    """What a run came to."""

    store: str
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    excerpt: str = ""


def run(kind: str, folder: Path, seed: int, seconds: float, size: int) -> Course:
    """A run on a store of its own."""
    resource = _resource(folder)
    with STORES[kind](ground(folder)) as store:
        records = Records(store.records, int(seconds * RATE))
        fleet = Fleet(store, member.Part(resource, str(folder), seed), size)
        nemesis = Nemesis(fleet, store)
        try:
            fleet.start()
            nemesis.strike_all(schedule(seed, seconds, store, fleet.blows, size))
            time.sleep(SETTLING)
            calm = time.monotonic()
            time.sleep(CALM)
            course = Course(kind, seconds, violations=fleet.check_alive())
            course.violations += records.wait_until_done(PATIENCE)
        finally:
            fleet.end()
        lines = lines_of(folder)
        course.violations += records.violations(_raised(lines))
        course.counts = _counted(lines) | records.counts() | store.counts() | _struck(nemesis)
    course.violations += _judged(lines, _accepted(resource), calm, store)
    if store.forgets:
        course.counts["starts too many, of ticks that the store forgot"] = _twice(lines)
    course.excerpt = _excerpt(lines, course.violations)
    return course


def _resource(folder: Path) -> str:
    """What the leases protect: a database of its own, which nothing befalls, and which keeps its own log."""
    url = f"sqlite:///{folder}/resource.db"
    engine = sa.create_engine(url)
    with engine.begin() as db:
        db.exec_driver_sql("PRAGMA journal_mode=WAL")
        db.exec_driver_sql(
            "CREATE TABLE accepted "
            "(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, fence INTEGER, process TEXT)"
        )
    engine.dispose()
    return url


def _accepted(resource: str) -> list[tuple[str, int]]:
    engine = sa.create_engine(resource)
    with engine.connect() as db:
        rows = db.exec_driver_sql("SELECT name, fence FROM accepted ORDER BY id").all()
    engine.dispose()
    return [(row.name, row.fence) for row in rows]


def _judged(lines: list[Line], accepted: list[tuple[str, int]], calm: float, store: Store) -> list[str]:
    ops = ops_of(lines)
    wrong = checker.fences_grow_as_seen([op for op in ops if op.line.verb == "race"])
    wrong += checker.writes_go_on(accepted)
    if not store.forgets:
        starts = [(line.name, line.tick) for line in lines if line.verb == "start"]
        wrong += checker.started_at_most(starts, member.TICKS)
    wrong += _acknowledged(ops, accepted)
    return wrong + _alive_again(lines, ops, calm)


def _acknowledged(ops: list[Op], accepted: list[tuple[str, int]]) -> list[str]:
    """Every write that was acknowledged is in the resource's log, and every one there was asked for."""
    there = Counter(accepted)
    told = Counter((op.line.name, op.line.fence) for op in ops if op.line.verb == "write" and op.ok)
    asked = Counter((op.line.name, op.line.fence) for op in ops if op.line.verb == "write")
    lost = [f"an acknowledged write of {name} with {fence} is lost" for name, fence in told - there]
    return lost + [f"a write of {name} with {fence} was asked by nobody" for name, fence in there - asked]


def _alive_again(lines: list[Line], ops: list[Op], since: float) -> list[str]:
    """Once the faults are over, every job runs to its end again and again, and every lock can be had."""
    ends = [line for line in lines if line.verb == "end"]
    wrong = [
        f"{job} stood still for {length:g} s after the faults"
        for job, length in member.OFTEN_ENOUGH.items()
        for i in range(int(CALM / length))
        if not any(end.name == job and 0 <= end.at - since - i * length < length for end in ends)
    ]
    held = {op.line.name for op in ops if op.line.verb == "race" and op.ok and op.begun > since}
    return wrong + [f"nobody won {name} after the faults" for name in member.LOCKS if name not in held]


def _raised(lines: list[Line]) -> Counter[str]:
    """How often the call for each record raised an error of its own."""
    return Counter(line.key for line in lines if line.verb == "failed")


def _counted(lines: list[Line]) -> dict[str, int]:
    said = Counter((line.verb, line.said) for line in lines)
    return {
        "locks granted": said["race", Said.OK],
        "races lost": said["race", Said.FAIL],
        "races of unknown outcome": said["race", Said.UNKNOWN],
        "ticks started": said["start", Said.OK],
        "ticks ended well": said["end", Said.OK],
        "fenced writes accepted": said["write", Said.OK],
        "fenced writes refused": said["write", Said.FAIL],
        "releases refused": said["release", Said.FAIL],
        "calls for records": said["call", Said.OK],
    }


def _struck(nemesis: Nemesis) -> dict[str, int]:
    return {f"times: {kind}": times for kind, times in sorted(nemesis.counts.items())}


def _twice(lines: list[Line]) -> int:
    starts = Counter((line.name, line.tick) for line in lines if line.verb == "start")
    return sum(times - member.TICKS[job] for (job, _), times in starts.items() if times > member.TICKS[job])


def _excerpt(lines: list[Line], violations: list[str]) -> str:
    """What was written down about the numbers that the first violation names."""
    if not violations:
        return ""
    named = {word for word in violations[0].split() if word.isdigit() and len(word) > 9}
    found = [line for line in lines if named & {str(line.fence), str(line.tick)}]
    return "\n".join(
        f"  {line.at:.3f} {line.process} {line.verb} {line.said} {line.name} {line.fence} {line.tick}"
        for line in found[:40]
    )
