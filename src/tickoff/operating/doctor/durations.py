"""What past runs say about a job's timeout, period and TTL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...model import Outcome, Run
from ...schedules.schedule import Schedule
from ...stores.base import Finding
from ..roster import Listed
from ..words import counted, length
from .lists import listed

_NEAR = 0.8
"""A run that took this share of its timeout will overrun it one day."""

_PERIODS = 4
"""So many times between two ticks are looked at for the shortest."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A job and its last runs: the longest, and how many were lost or crashed; durations in ms."""

    job: Listed
    period: int
    longest: int
    lost: int
    crashed: int

    @classmethod
    def of(cls, job: Listed, period: int, runs: Sequence[Run]) -> Seen:
        """From the lines of a history."""
        outcomes = [run.outcome for run in runs]
        ran = [run for run in runs if run.outcome in (Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT)]
        longest = max((run.ended - run.started for run in ran), default=0)
        lost, crashed = outcomes.count(Outcome.LOST), outcomes.count(Outcome.CRASHED)
        return cls(job, period, longest, lost, crashed)

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.carried.name

    @property
    def timeout(self) -> float:
        """Its timeout."""
        timeout = self.job.carried.timeout
        return float("inf") if timeout is None else timeout * 1000


def of_durations(seen: Sequence[Seen]) -> Iterator[Finding]:
    """What the runs of each job say, all jobs that say the same in one finding."""
    for look in (_timeouts, _overlaps, _short_ttls, _long_ttls):
        yield from look(seen)


def _timeouts(seen: Sequence[Seen]) -> Iterator[Finding]:
    yield from _finding(
        [f"{s.name} took {length(s.longest)} of {length(round(s.timeout))}" for s in seen if _is_tight(s)],
        lambda told: Finding(
            check="timeout",
            what=f"runs come near their timeout: {told}",
            danger="a slow day ends them half-way",
            remedy="raise timeout=, or let the job do less at a time",
        ),
    )


def _overlaps(seen: Sequence[Seen]) -> Iterator[Finding]:
    yield from _finding(
        [f"{s.name} took {length(s.longest)}, {_due(s)}" for s in seen if s.longest > s.period],
        lambda told: Finding(
            check="overlap",
            what=f"runs last longer than the time between two ticks: {told}",
            danger="the ticks that come meanwhile are skipped",
            remedy="schedule the job less often, or make it quicker",
        ),
    )


def _short_ttls(seen: Sequence[Seen]) -> Iterator[Finding]:
    yield from _finding(
        [f"{s.name} {counted(s.lost, 'time')}, ttl {_ttl(s)}" for s in seen if s.lost],
        lambda told: Finding(
            check="ttl-short",
            what=f"leases were lost while the work went on: {told}",
            danger="another server may start the next tick while the first still works",
            remedy="raise ttl= above the longest outage or pause of a process, and guard writes by the fence",
        ),
    )


def _long_ttls(seen: Sequence[Seen]) -> Iterator[Finding]:
    slow = [s for s in seen if s.crashed and s.job.carried.ttl > s.period]
    yield from _finding(
        [f"{s.name} has ttl {_ttl(s)}, {_due(s)}" for s in slow],
        lambda told: Finding(
            check="ttl-long",
            what=f"servers crashed, with a TTL longer than the time between two ticks: {told}",
            danger="after each crash, the ticks within one TTL are skipped",
            remedy="lower ttl=; it is renewed while the work goes on, so it need not be as long as the work",
        ),
    )


def _finding(told: Sequence[str], finding: Callable[[str], Finding]) -> Iterator[Finding]:
    if told:
        yield finding(listed(told))


def _is_tight(seen: Seen) -> bool:
    return seen.longest >= seen.timeout * _NEAR


def _due(seen: Seen) -> str:
    return f"and is due every {length(seen.period)}"


def _ttl(seen: Seen) -> str:
    return length(seen.job.carried.ttl)


def shortest_period(schedule: Schedule, now: int) -> int | None:
    """The shortest of the next few times between two ticks (ms)."""
    ticks = [now]
    while len(ticks) <= _PERIODS + 1 and (tick := schedule.after(ticks[-1])) is not None:
        ticks.append(tick)
    return min((later - former for former, later in pairwise(ticks[1:])), default=None)
