"""The nouns of Tickoff, frozen: what a server asks of a store, and what a store keeps and answers.

Instants are milliseconds since the epoch by the store's clock and 0 means "never"; durations are
milliseconds; an empty string means "nobody". That is how every store keeps them, so nothing is
translated on the way. What users are handed (`Skipped`, `Ran`) speaks in aware datetimes instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

UNSCHEDULED_LIFE = 7 * 24 * 3600 * 1000
"""Data of a name without a schedule is dropped this long (ms) after its last use."""

TOMBSTONE_LIFE = 3600 * 1000
"""How long (ms) a withdrawn race is remembered, should its request still be on its way."""

TOMBSTONES_KEPT = 200
"""Withdrawn races remembered of a name where its row keeps them: after an outage there may be thousands."""

STORE_FORGOT = "the store lost its data, a former holder may still be at work"
"""The note of a race that was held off for a while because a store had forgotten the name."""

RUNS_KEPT = 1000
"""Runs kept in the history of one name."""


class Why(StrEnum):
    """Why a race was not won."""

    HELD = "held"
    DONE = "done"
    PAUSED = "paused"
    TOO_EARLY = "too early"


class Outcome(StrEnum):
    """How a run ended."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    LOST = "lost"
    CRASHED = "crashed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Known:
    """What a server remembers of a name and tells the store, in case the store forgot."""

    fence: int = 0
    decided: int = 0
    finished: int = 0
    since: int = 0
    ttl: int = 0
    steered: int = 0
    paused: bool = False
    paused_by: str = ""
    paused_why: str = ""


_NOTHING = Known()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """One entry in a race: who wants which name, for how long, and for which tick (0: a plain lock).

    A manual one runs when it was asked for: its tick is the instant of the request, and it moves no marks.
    """

    name: str
    token: str
    owner: str
    ttl: int
    tick: int = 0
    attempts: int = 1
    takeover: bool = False
    scheduled: bool = False
    manual: bool = False
    known: Known = _NOTHING

    @property
    def plain(self) -> bool:
        """Whether it is for a lock, on a name of which its server knows no more than the last lease."""
        marked = self.known.decided or self.known.finished or self.known.since or self.known.steered
        return not (self.tick or self.scheduled or marked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A lease as its holder knows it: enough to renew it, to settle it, or to assert it anew."""

    name: str
    token: str
    owner: str
    ttl: int
    fence: int
    taken: int
    until: int
    tick: int = 0
    attempt: int = 0
    scheduled: bool = False
    manual: bool = False
    known: Known = _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a holder settles its tick; it may be started again while fewer than `attempts` were used."""

    hold: Hold
    outcome: Outcome
    error: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A line of a name's history."""

    name: str
    tick: int
    fence: int
    owner: str
    started: int
    ended: int
    outcome: Outcome
    error: str = ""
    attempt: int = 0
    manual: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A short text on a board that all servers read: presence, requests, progress; gone after its life."""

    key: str
    text: str
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """All a store keeps of one name.

    The lease (token … attempt) is the one granted last; it is live while `until` lies ahead. No tick
    up to `decided` is started afresh; `finished` follows when its outcome is final; `open` says that
    the decided tick may be started again. `barrier` is the instant until which a store that forgot
    this name grants nothing. `version` is for stores that compare and swap whole entries.
    """

    name: str
    version: int = 0
    token: str = ""
    owner: str = ""
    tick: int = 0
    taken: int = 0
    until: int = 0
    ttl: int = 0
    fence: int = 0
    attempt: int = 0
    manual: bool = False
    let_go: str = ""
    decided: int = 0
    finished: int = 0
    since: int = 0
    open: bool = False
    outcome: str = ""
    outcome_by: str = ""
    outcome_at: int = 0
    steered: int = 0
    paused: bool = False
    paused_by: str = ""
    paused_why: str = ""
    barrier: int = 0
    scheduled: bool = False
    used: int = 0
    withdrawn: tuple[tuple[str, int], ...] = ()

    def live(self, now: int) -> bool:
        """Whether somebody holds the name at this instant."""
        return self.token != "" and self.until > now

    def crashed(self, now: int) -> bool:
        """Whether the lease ran out under a tick that nobody settled: derived, nobody is left to write it."""
        return self.token != "" and self.until <= now and self.tick != 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A store's answer to one request: granted or not (a race says `why`), the entry, the store's time."""

    ok: bool
    entry: Entry
    now: int
    why: Why | None = None


class Told(Answer):
    """An answer whose entry is read when it is first asked for: in a rush nobody asks for most of them."""

    __slots__ = ("_read",)

    _read: Callable[[], Entry]

    def __init__(self, ok: bool, now: int, read: Callable[[], Entry], why: Why | None = None) -> None:
        keep = object.__setattr__
        keep(self, "ok", ok)
        keep(self, "now", now)
        keep(self, "why", why)
        keep(self, "_read", read)

    @property
    def entry(self) -> Entry:
        """The entry, read once."""
        kept = Answer.__dict__["entry"]
        try:
            found: Entry = kept.__get__(self)
        except AttributeError:
            found = self._read()
            kept.__set__(self, found)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A race that was not won, and why; falsy, so `if lease:` reads as it should."""

    name: str
    why: Why
    by: str = ""
    tick: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    outcome: str = ""
    note: str = ""

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, "skipped:", _reason(self)) if part)


@dataclass(frozen=True, slots=True)
class Ran(Generic[T]):
    """The value of a function that ran with the lock; truthy, whatever the value."""

    value: T

    def __bool__(self) -> Literal[True]:
        return True


def won_entry(
    bid: Bid,
    taken: int,
    scheduled: int,
    fence: int,
    attempt: int,
    decided: int,
    finished: int,
    since: int,
    steered: int,
) -> Entry:
    """The entry after a win, from the bid and the little that only the store knows."""
    return Entry(
        name=bid.name,
        token=bid.token,
        owner=bid.owner,
        tick=bid.tick,
        taken=taken,
        until=taken + bid.ttl,
        ttl=bid.ttl,
        fence=fence,
        attempt=attempt,
        manual=bid.manual,
        decided=decided,
        finished=finished,
        since=since,
        steered=steered,
        scheduled=bool(scheduled),
        used=taken,
    )


def held(entry: Entry, ttl: int | None = None, known: Known = _NOTHING) -> Hold:
    """A live lease as its holder knows it, and wants it prolonged."""
    return Hold(
        name=entry.name,
        token=entry.token,
        owner=entry.owner,
        ttl=ttl or entry.ttl,
        fence=entry.fence,
        taken=entry.taken,
        until=entry.until,
        tick=entry.tick,
        attempt=entry.attempt,
        scheduled=entry.scheduled,
        manual=entry.manual,
        known=known,
    )


def moment(ms: int) -> datetime:
    """The stored instant as an aware datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def instant(ms: int) -> datetime | None:
    """The stored instant as an aware datetime, None for never."""
    return moment(ms) if ms else None


def skipped(name: str, answer: Answer) -> Skipped:
    """Put a store's refusal into the words users read."""
    entry, why = answer.entry, answer.why or Why.HELD
    said = Skipped(name=name, why=why, note="")
    if why is Why.HELD and not entry.live(answer.now):
        return replace(
            said,
            until=instant(entry.barrier),
            note=STORE_FORGOT,
        )
    if why is Why.HELD:
        note = "" if entry.owner else "held by a program other than Tickoff"
        return replace(said, by=entry.owner, tick=instant(entry.tick), until=instant(entry.until), note=note)
    if why is Why.PAUSED:
        return replace(said, by=entry.paused_by, at=instant(entry.steered), note=entry.paused_why)
    if why is Why.DONE:
        return replace(
            said,
            by=entry.outcome_by,
            tick=instant(entry.decided),
            at=instant(entry.outcome_at),
            outcome=entry.outcome or (Outcome.CRASHED if entry.crashed(answer.now) else ""),
        )
    return replace(said, at=instant(answer.now), note="the store's clock has not reached this tick")


def _reason(skip: Skipped) -> str:
    parts: list[str] = [skip.why]
    if skip.by:
        parts.append(f"by {skip.by}")
    if skip.tick:
        parts.append(f"for the tick of {skip.tick:%Y-%m-%d %H:%M:%S} UTC")
    if skip.until:
        parts.append(f"until {skip.until:%Y-%m-%d %H:%M:%S} UTC")
    if skip.at:
        parts.append(f"at {skip.at:%Y-%m-%d %H:%M:%S} UTC")
    if skip.outcome:
        parts.append(f"({skip.outcome})")
    if skip.note:
        parts.append(f"- {skip.note}")
    return " ".join(parts)
