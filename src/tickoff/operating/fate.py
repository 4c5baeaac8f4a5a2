"""What became of a tick, told from the entry and the history of its name: pure, in the store's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..model import RUNS_KEPT, Entry, Outcome, Run
from ..rules import crash_of
from ..schedules.schedule import Schedule


class Kind(StrEnum):
    """The fates of a tick."""

    RAN = "ran"
    RUNNING = "running"
    RETRYING = "retrying"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    FUTURE = "future"
    NO_TICK = "no tick"
    UNSEEN = "unseen"
    FORGOTTEN = "forgotten"
    PAUSED = "paused"
    DUE = "due"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a tick, and the runs that were begun for it, the last one last."""

    kind: Kind
    runs: tuple[Run, ...] = ()


def fate_of(tick: int, schedule: Schedule | None, entry: Entry, runs: Sequence[Run], now: int) -> Fate:
    """The fate of a tick; `runs` are the lines of its name, back to long enough before it."""
    begun = begun_for(tick, entry, runs, now)
    if entry.live(now) and entry.tick == tick:
        return Fate(Kind.RUNNING, begun)
    if begun:
        return Fate(_kind_of(begun[-1], schedule, entry, now), begun)
    return Fate(_why_nothing(tick, schedule, entry, runs, now))


def begun_for(tick: int, entry: Entry, runs: Sequence[Run], now: int) -> tuple[Run, ...]:
    """The runs of a tick, with the one that crashed and that nobody wrote down yet."""
    lines = sorted((run for run in runs if run.tick == tick), key=lambda run: run.fence)
    found = crash_of(entry, now) or _only_marked(entry)
    if found is None or found.tick != tick or any(found.fence in (0, run.fence) for run in lines):
        return tuple(lines)
    return (*lines, found)


def _only_marked(entry: Entry) -> Run | None:
    """The last outcome as the marks have it, should the history be lost."""
    if not entry.outcome or not entry.decided:
        return None
    return Run(
        name=entry.name,
        tick=entry.decided,
        fence=0,
        owner=entry.outcome_by,
        started=0,
        ended=entry.outcome_at,
        outcome=Outcome(entry.outcome),
        attempt=entry.attempt,
    )


def _kind_of(last: Run, schedule: Schedule | None, entry: Entry, now: int) -> Kind:
    if entry.open and entry.decided == last.tick and _current(last.tick, schedule, now):
        return Kind.RETRYING
    match last.outcome:
        case Outcome.SKIPPED:
            return Kind.SKIPPED
        case Outcome.CRASHED:
            return Kind.CRASHED
        case _:
            return Kind.RAN


def _why_nothing(tick: int, schedule: Schedule | None, entry: Entry, runs: Sequence[Run], now: int) -> Kind:
    if schedule is not None and schedule.upto(tick) != tick:
        return Kind.NO_TICK
    if tick > now:
        return Kind.FUTURE
    if not entry.scheduled and not entry.decided:
        return Kind.UNSEEN
    if entry.paused and tick >= entry.steered:
        return Kind.PAUSED
    if not _seen_before(tick, entry, runs):
        return Kind.FORGOTTEN if len(runs) >= RUNS_KEPT else Kind.UNSEEN
    return Kind.DUE if _current(tick, schedule, now) else Kind.MISSED


def _seen_before(tick: int, entry: Entry, runs: Sequence[Run]) -> bool:
    """Whether something of the job is known from before the tick."""
    return 0 < entry.decided < tick or any(run.tick < tick for run in runs)


def _current(tick: int, schedule: Schedule | None, now: int) -> bool:
    """Whether the tick may still be started: no later one is due."""
    later = schedule.after(tick) if schedule is not None else None
    return later is None or later > now
