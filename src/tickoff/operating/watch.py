"""The alarm for missed ticks: every server knows what is due, one at a time looks whether it was done.

Once an interval the servers race for the look. Who wins reads, in one trip, how all jobs stand, and tells of
every tick that was due a grace ago and that nobody finished. It takes up where the last look ended, however
long ago that was: what fell due while no server was there is told by the first one that comes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..model import Bid, Entry, Outcome, Run
from ..names import LONGEST_NAME, full_name
from ..rules import crash_of
from ..ticks.events import Event, Events, Kind
from ..ticks.job import Job
from ..work import End
from .fate import Kind as Fate
from .fate import fate_of

_log = logging.getLogger("tickoff")

_INTERVAL = 15.0
"""Seconds between two looks; less where the grace is short."""

_ATTEMPTS = 3
"""Looks, and alarms, that are begun anew when their server crashes."""

_BACK = 300_000
"""How far (ms) a look goes back for crashes that the next tick has covered since."""

_MOST = 1000
"""So many ticks of one job are looked at, the latest ones."""

_DONE = End(Outcome.OK, "")


@dataclass(frozen=True, slots=True)
class Miss:
    """A tick that nobody finished, and why as far as can be told."""

    job: Job
    tick: int
    why: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look is about: the instants since the last one, and the grace (ms).

    `seen` has the tick of each job that was decided when this server came, or that instant if none was.
    """

    since: int
    now: int
    grace: int
    seen: Mapping[str, int]

    def due(self, job: Job) -> list[int]:
        """The ticks whose grace has ended since the last look, the oldest first."""
        margin = self.grace + job.jitter
        first = self.since - margin if self.since else self.seen[job.name]
        found: list[int] = []
        tick = job.schedule.upto(self.now - margin)
        while tick is not None and tick > first and len(found) < _MOST:
            found.append(tick)
            tick = job.schedule.upto(tick - 1)
        return found[::-1]

    def misses(self, job: Job, due: Sequence[int], entry: Entry, runs: Sequence[Run]) -> list[Miss]:
        """Those among the ticks, and those just before them, that nobody finished."""
        before = job.schedule.upto(due[0] - 1) if due else None
        found = [self._miss(job, tick, entry, runs) for tick in due]
        if before is not None and runs:
            found.append(self._crash(job, before, entry, runs))
        found.append(self._fresh_crash(job, entry))
        distinct = {miss.tick: miss for miss in found if miss is not None}
        return [distinct[tick] for tick in sorted(distinct)]

    def _miss(self, job: Job, tick: int, entry: Entry, runs: Sequence[Run]) -> Miss | None:
        kind = fate_of(tick, job.schedule, entry, runs, self.now).kind
        if kind is Fate.CRASHED:
            return self._crash(job, tick, entry, runs)
        known = kind is Fate.UNSEEN and self.seen[job.name] < tick
        if kind not in (Fate.MISSED, Fate.DUE) and not known:
            return None
        return None if entry.steered >= tick else Miss(job, tick, _hindrance(entry, self.now))

    def _crash(self, job: Job, tick: int, entry: Entry, runs: Sequence[Run]) -> Miss | None:
        fate = fate_of(tick, job.schedule, entry, runs, self.now)
        if fate.kind is not Fate.CRASHED or self._may_be_taken_over(job, tick, fate.runs[-1]):
            return None
        return Miss(job, tick, f"{fate.runs[-1].owner} crashed while it was at work on it")

    def _fresh_crash(self, job: Job, entry: Entry) -> Miss | None:
        """A run that was long at work when its server died: its tick came before those that are due."""
        crash = crash_of(entry, self.now)
        if crash is None or crash.manual or entry.until + self._patience(job) <= self.since:
            return None
        return self._crash(job, crash.tick, entry, ())

    def _may_be_taken_over(self, job: Job, tick: int, crash: Run) -> bool:
        later = job.schedule.after(tick)
        current = later is None or later > self.now
        waiting = crash.ended + self._patience(job) > self.now
        return job.takeover and crash.attempt < job.attempts and current and waiting

    def _patience(self, job: Job) -> int:
        return self.grace if job.takeover else 0


def plainly_done(job: Job, due: Sequence[int], entry: Entry, now: int) -> bool:
    """Whether the marks alone tell that there is nothing to look for in the history."""
    if not due:
        return True
    former = job.schedule.upto(due[0] - 1)
    seldom = former is None or due[0] - former > _BACK
    done = entry.finished >= due[-1] or (entry.live(now) and entry.tick == due[-1])
    return seldom and len(due) == 1 and entry.decided == due[-1] and done


class Watch:
    """The looks of one server."""

    def __init__(
        self, referee: Referee, namespace: str, jobs: Sequence[Job], events: Events, grace: float
    ) -> None:
        self._referee = referee
        self._namespace = namespace
        self._jobs = {job.name: job for job in jobs}
        self._events = events
        self._grace = round(grace * 1000)
        self._interval = round(min(_INTERVAL, max(grace / 4, 0.5)) * 1000)
        self._name = full_name(namespace, f"tickoff.operating.watch.{_digest(jobs)}")
        self._seen: dict[str, int] | None = None
        self._loop = Loop("tickoff-watch", self.step)

    def start(self) -> None:
        """Note where every job stands before this server changes it."""
        try:
            self._note()
        except StoreUnreachable as error:
            _log.info("cannot look for missed ticks yet: %s", error)
        self._loop.wake_by(elapsed() + random.uniform(0, self._interval / 1000))  # noqa: S311 - spreading out

    def quiet(self) -> None:
        """Look no more."""
        self._loop.stop()

    def busy(self) -> bool:
        """A look is short, and the next one takes up what it leaves."""
        return False

    def stop(self) -> None:
        """Look no more."""
        self._loop.stop()

    def step(self, now: float) -> float:
        """Look, if nobody has in this interval; when to try again."""
        try:
            self._race()
        except StoreUnreachable as error:
            _log.info("cannot look for missed ticks: %s", error)
        return now + self._interval / 1000

    def _note(self) -> dict[str, int]:
        answers = self._referee.store.read(list(self._jobs))
        self._seen = {answer.entry.name: answer.entry.decided or answer.now for answer in answers}
        return self._seen

    def _race(self) -> None:
        seen = self._seen or self._note()
        at = int(self._referee.time.now()) // self._interval * self._interval
        lease = self._referee.race(self._bid(self._name, 2 * self._interval, at))
        if not isinstance(lease, Lease):
            return
        try:
            self._look(Look(_last(lease), at, self._grace, seen))
        except BaseException:
            self._referee.leave(lease)  # unfinished, it is another server's to look
            raise
        self._referee.finish(lease, _DONE, 1)

    def _bid(self, name: str, ttl: int, tick: int) -> Bid:
        """For a name that may be forgotten when it was not used for a week; a crash is made good."""
        bid = self._referee.tick_bid(name, ttl, tick, attempts=_ATTEMPTS, takeover=True)
        return replace(bid, scheduled=False)

    def _look(self, look: Look) -> None:
        """One trip for how all jobs stand, one for the history where that is in doubt, one for the alarms."""
        due = {name: look.due(job) for name, job in self._jobs.items()}
        entries = {a.entry.name: a.entry for a in self._referee.store.read(list(self._jobs))}
        runs = self._history(due, entries, look.now)
        misses = {
            name: look.misses(job, due[name], entries[name], runs.get(name, ()))
            for name, job in self._jobs.items()
        }
        self._report([found for found in misses.values() if found])

    def _history(
        self, due: Mapping[str, Sequence[int]], entries: Mapping[str, Entry], now: int
    ) -> dict[str, list[Run]]:
        names = [n for n, ticks in due.items() if not plainly_done(self._jobs[n], ticks, entries[n], now)]
        runs: dict[str, list[Run]] = {name: [] for name in names}
        if names:
            since = min(due[name][0] for name in names) - _BACK
            for run in self._referee.store.runs(names, since):
                runs[run.name].append(run)
        return runs

    def _report(self, misses: Sequence[Sequence[Miss]]) -> None:
        """Tell of each job's misses, unless another server did."""
        if not misses:
            return
        bids = [
            self._bid(alarm_name(self._namespace, found[-1].job.name), self._interval, found[-1].tick)
            for found in misses
        ]
        verdicts = self._referee.take(bids, len(bids))
        for found, lease in zip(misses, verdicts, strict=True):
            if isinstance(lease, Lease):
                self._tell([miss for miss in found if miss.tick > _last(lease)])
                self._referee.finish(lease, _DONE, 1)

    def _tell(self, misses: Sequence[Miss]) -> None:
        last = misses[-1]
        self._events.tell(
            Event(kind=Kind.MISSED, job=last.job.name, tick=last.tick, error=last.why, count=len(misses))
        )


def alarm_name(namespace: str, job: str) -> str:
    """The name that is raced for to tell of a job (by its full name), once for each of its ticks."""
    own = f"tickoff.alarm.{job.removeprefix(f'{namespace}:')}"
    if len(own) + len(namespace) >= LONGEST_NAME:
        own = f"tickoff.alarm.{blake2b(job.encode(), digest_size=16).hexdigest()}"
    return full_name(namespace, own)


def _last(lease: Lease) -> int:
    """The tick of its name that was finished last, 0 for none."""
    return round(lease.since.timestamp() * 1000) if lease.since else 0


def _digest(jobs: Iterable[Job]) -> str:
    """Servers that look for the same take turns."""
    told = sorted(f"{job.name}\n{job.schedule.text}" for job in jobs)
    return blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def _hindrance(entry: Entry, now: int) -> str:
    """Why nobody could start it, as far as can be seen now."""
    if entry.live(now) and not entry.tick:
        return f"its name is held as a lock by {entry.owner or 'a program other than Tickoff'}"
    if entry.live(now) and entry.manual:
        return f"{entry.owner} was at work on a run asked for by hand"
    return "no server started it: none was there, or none had a slot free, or the store was out of reach"
