"""What is amiss, and what to do: the store by its own examination, servers and jobs by what they tell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ...ground.clocks import elapsed, wall
from ...leases.referee import Referee
from ...model import Run, moment
from ...stores.base import Examined, Finding, LeaseStore
from ...ticks.presence import Carried
from ..roster import Roster, call_roll
from .durations import Seen, of_durations, shortest_period
from .servers import of_clocks, of_jobs, of_leases, of_versions

_LOOKED_AT = 10
"""So many periods of each job are looked back at, or a few more."""

_ALIKE = 1.2
"""Jobs are asked about together whose periods differ by less than this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was looked at, and what was found amiss."""

    at: datetime
    store: str
    servers: int
    jobs: int
    findings: tuple[Finding, ...]

    @property
    def well(self) -> bool:
        """Whether nothing is amiss."""
        return not self.findings


def diagnose(referee: Referee, namespace: str, own: Sequence[Carried], mine: str) -> Diagnosis:
    """Look at everything; a store whose tables do not fit is not asked for more."""
    store = referee.store
    found = store.examine() if isinstance(store, Examined) else []
    if any(finding.check == "schema" for finding in found):
        return Diagnosis(at=moment(wall()), store=store.address, servers=0, jobs=0, findings=tuple(found))
    skew, now = _measured(referee)
    roster = call_roll(referee, namespace, own)
    names = sorted(roster.all)
    entries = [answer.entry for answer in store.read(names)] if names else []
    seen = _seen(store, roster, now)
    found += [*of_clocks(skew, roster), *of_versions(mine, roster), *of_jobs(roster)]
    found += [*of_leases(roster, entries, now), *of_durations(seen)]
    return Diagnosis(
        at=moment(now),
        store=store.address,
        servers=len(roster.servers),
        jobs=len(roster.jobs),
        findings=tuple(found),
    )


def _measured(referee: Referee) -> tuple[float, int]:
    """By how many seconds our clock is ahead of the store's, as told by one trip; and the store's time."""
    referee.store.now()  # connects, which would count as skew
    sent = elapsed()
    now = referee.store.now()
    referee.time.learn(now, sent, elapsed())
    return referee.time.skew, now


def _seen(store: LeaseStore, roster: Roster, now: int) -> list[Seen]:
    """The last runs of all jobs: one trip for those whose ticks come about equally often."""
    periods = {name: shortest_period(job.schedule, now) for name, job in roster.jobs.items()}
    alike: dict[int, list[str]] = defaultdict(list)
    for name, period in periods.items():
        if period is not None:
            alike[round(math.log(period, _ALIKE))].append(name)
    runs: dict[str, list[Run]] = defaultdict(list)
    for names in alike.values():
        longest = max(periods[name] or 0 for name in names)
        for run in store.runs(names, now - _LOOKED_AT * longest):
            runs[run.name].append(run)
    return [Seen.of(roster.jobs[name], period, runs[name]) for name, period in periods.items() if period]
