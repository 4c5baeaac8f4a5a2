"""What there is: jobs and how they stand, leaders, locks that are held, servers that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model import Answer, Entry, Outcome, Run, instant, moment
from .fate import crash_of
from .roster import Listed, Roster

_OWN = "tickoff."
"""Names of our own, which are no business of the user's, begin with it after their namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Who has a name, for which tick, since when, and until when unless renewed."""

    owner: str
    tick: datetime | None
    since: datetime | None
    until: datetime
    fence: int
    attempt: int
    manual: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """By whom a job is paused, why, and since when."""

    by: str
    why: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the last tick ended that is over."""

    tick: datetime
    outcome: Outcome
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job, and how it stands; `schedule` is empty where nobody told of one."""

    name: str
    schedule: str
    next: datetime | None
    last: Ended | None
    success: datetime | None
    running: Holding | None
    retrying: bool
    paused: Paused | None
    servers: int
    differing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderStatus:
    """A post, who leads there if anybody does, and how many servers can."""

    name: str
    holder: Holding | None
    paused: Paused | None
    servers: int
    differing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockStatus:
    """A name without a schedule that somebody holds."""

    name: str
    holder: Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """A server that is there."""

    owner: str
    version: str
    started: datetime
    skew: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All there is, at an instant of the store's."""

    at: datetime
    store: str
    jobs: tuple[JobStatus, ...]
    leaders: tuple[LeaderStatus, ...]
    locks: tuple[LockStatus, ...]
    servers: tuple[ServerStatus, ...]


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


def hidden(name: str) -> bool:
    """Whether a full name is one of our own."""
    return name.startswith(_OWN) or f":{_OWN}" in name


def status_of(roster: Roster, answers: Iterable[Answer], prefix: str, store: str, now: int) -> Status:
    """All there is, from what the servers tell and what the store keeps; the prefix is left out of names."""
    entries = {a.entry.name: a.entry for a in answers if not hidden(a.entry.name)}
    scheduled = {name for name, entry in entries.items() if entry.scheduled} | set(roster.jobs)
    jobs = [
        job_status(name, entries.get(name, Entry(name=name)), roster.jobs.get(name), prefix, now)
        for name in sorted(scheduled)
    ]
    leaders = [
        _leader_status(name, entries.get(name, Entry(name=name)), roster.posts[name], prefix, now)
        for name in sorted(roster.posts)
    ]
    locks = [
        LockStatus(name=name.removeprefix(prefix), holder=_holding(entry))
        for name, entry in sorted(entries.items())
        if name not in scheduled and name not in roster.posts and entry.live(now)
    ]
    return Status(
        at=moment(now),
        store=store,
        jobs=tuple(jobs),
        leaders=tuple(leaders),
        locks=tuple(locks),
        servers=_servers(roster),
    )


def job_status(name: str, entry: Entry, listed: Listed | None, prefix: str, now: int) -> JobStatus:
    """How one job stands."""
    following = None if listed is None or entry.paused else listed.schedule.after(now)
    return JobStatus(
        name=name.removeprefix(prefix),
        schedule="" if listed is None else listed.carried.schedule,
        next=None if following is None else moment(following),
        last=_ended(entry, now),
        success=instant(entry.since),
        running=_holding(entry) if entry.live(now) else None,
        retrying=entry.open and entry.attempt > 0 and not entry.live(now),
        paused=_paused(entry),
        servers=0 if listed is None else len(listed.servers),
        differing=listed is not None and bool(listed.differing),
    )


def _leader_status(name: str, entry: Entry, listed: Listed, prefix: str, now: int) -> LeaderStatus:
    return LeaderStatus(
        name=name.removeprefix(prefix),
        holder=_holding(entry) if entry.live(now) else None,
        paused=_paused(entry),
        servers=len(listed.servers),
        differing=bool(listed.differing),
    )


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


def _ended(entry: Entry, now: int) -> Ended | None:
    crash = crash_of(entry, now)
    if crash is not None and crash.ended > entry.outcome_at:
        return Ended(tick=moment(crash.tick), outcome=crash.outcome, by=crash.owner, at=moment(crash.ended))
    if not entry.outcome:
        return None
    return Ended(
        tick=moment(entry.decided),
        outcome=Outcome(entry.outcome),
        by=entry.outcome_by,
        at=moment(entry.outcome_at),
    )


def _holding(entry: Entry) -> Holding:
    return Holding(
        owner=entry.owner,
        tick=instant(entry.tick),
        since=instant(entry.taken),
        until=moment(entry.until),
        fence=entry.fence,
        attempt=entry.attempt,
        manual=entry.manual,
    )


def _paused(entry: Entry) -> Paused | None:
    if not entry.paused:
        return None
    return Paused(by=entry.paused_by, why=entry.paused_why, since=moment(entry.steered))


def _servers(roster: Roster) -> tuple[ServerStatus, ...]:
    jobs = Counter(server.owner for listed in roster.jobs.values() for server in listed.servers)
    return tuple(
        ServerStatus(
            owner=server.owner,
            version=server.version,
            started=moment(server.started),
            skew=server.skew,
            jobs=jobs[server.owner],
        )
        for server in roster.servers
    )
