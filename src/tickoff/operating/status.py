"""What there is: jobs and how they stand, leaders, locks that are held, servers that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ..model import Answer, Entry, Outcome, instant, moment
from ..records.names import Names, names_of
from ..rules import crash_of
from .roster import Listed, Roster

if TYPE_CHECKING:
    from ..records.progress import Report

Boards = Mapping[str, Sequence["Report"]]
"""The jobs over records, and what the servers that work them say."""

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
    """What `@jobs.leader` named: who leads, if anybody does, and how many servers can."""

    name: str
    holder: Holding | None
    paused: Paused | None
    servers: int
    differing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus:
    """A job over records: who works it, and how fast. How much is left, its table tells."""

    name: str
    servers: int
    in_flight: int
    rate: float
    held: str
    """Why calls wait, empty when none do."""
    swept: Ended | None
    paused: Paused | None


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
    records: tuple[RecordStatus, ...]
    locks: tuple[LockStatus, ...]
    servers: tuple[ServerStatus, ...]


def hidden(name: str) -> bool:
    """Whether a full name is one of our own."""
    return name.startswith(_OWN) or f":{_OWN}" in name


def status_of(
    roster: Roster, answers: Iterable[Answer], boards: Boards, prefix: str, store: str, now: int
) -> Status:
    """All there is, from what the servers tell and what the store keeps; the prefix is left out of names."""
    entries = {a.entry.name: a.entry for a in answers if not hidden(a.entry.name)}
    records = [_record_status(job, boards[job], entries, prefix, now) for job in sorted(boards)]
    for job in boards:
        for name in astuple(_names(job, prefix)):
            entries.pop(name, None)
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
        records=tuple(records),
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


def _record_status(
    job: str, reports: Sequence[Report], entries: Mapping[str, Entry], prefix: str, now: int
) -> RecordStatus:
    names = _names(job, prefix)
    sweep, board = (entries.get(name, Entry(name=name)) for name in (names.sweep, names.board))
    return RecordStatus(
        name=job,
        servers=sum(report.alive for report in reports),
        in_flight=sum(report.in_flight for report in reports),
        rate=sum(report.rate for report in reports),
        held=next((report.held for report in reports if report.held), ""),
        swept=_ended(sweep, now),
        paused=_paused(board),
    )


def _names(job: str, prefix: str) -> Names:
    return names_of(job, lambda name: prefix + name)


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
