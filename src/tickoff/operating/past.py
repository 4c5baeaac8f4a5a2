"""What was: the runs of a job, and the crash that nobody wrote down yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model import Entry, Outcome, Run, instant, moment
from ..rules import crash_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A line of a job's history."""

    tick: datetime
    outcome: Outcome
    owner: str
    started: datetime | None
    ended: datetime
    seconds: float
    fence: int
    attempt: int
    manual: bool
    error: str


def history_of(runs: Sequence[Run], entry: Entry, now: int) -> tuple[PastRun, ...]:
    """The lines of a history, with the crash that nobody wrote down yet."""
    crash = crash_of(entry, now)
    if crash is not None and all((run.tick, run.fence) != (crash.tick, crash.fence) for run in runs):
        runs = sorted([*runs, crash], key=lambda run: (run.tick, run.fence), reverse=True)
    return tuple(past(run) for run in runs)


def past(run: Run) -> PastRun:
    """A line of a history in the words of users."""
    return PastRun(
        tick=moment(run.tick),
        outcome=run.outcome,
        owner=run.owner,
        started=instant(run.started),
        ended=moment(run.ended),
        seconds=max(0, run.ended - run.started) / 1000 if run.started else 0.0,
        fence=run.fence,
        attempt=run.attempt,
        manual=run.manual,
        error=run.error,
    )
