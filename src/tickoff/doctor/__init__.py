"""What is amiss, and what to do: the store by its own examination, servers and jobs by what they tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..clocks import elapsed, wall
from ..model import moment
from ..presence import Carried
from ..referee import Referee
from ..roster import call_roll
from ..stores.base import Examined, Finding
from .durations import of_durations
from .servers import of_clocks, of_jobs, of_leases, of_versions

_LOOKED_AT = 20
"""Runs of each job whose durations are looked at."""


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
    entries = {a.entry.name: a.entry for a in store.read(sorted(roster.jobs))} if roster.jobs else {}
    histories = {name: store.history(name, _LOOKED_AT) for name in roster.jobs}
    found += [*of_clocks(skew, roster), *of_versions(mine, roster), *of_jobs(roster)]
    found += [*of_leases(roster, entries.values(), now), *of_durations(roster, histories, now)]
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
