"""See, explain, steer: what people ask of a fleet, from any machine, with or without the jobs' code."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from typing import Any, overload

from ..errors import ConfigError, TickoffError, printable
from ..model import RUNS_KEPT, Answer
from ..names import check_name, full_name
from ..operating.doctor import Diagnosis, diagnose
from ..operating.explain import Case, Explanation
from ..operating.past import PastRun, history_of
from ..operating.roster import Listed, Roster, call_roll
from ..operating.status import (
    Boards,
    JobStatus,
    Status,
    hidden,
    job_status,
    status_of,
)
from ..records.names import jobs_among, names_of
from ..schedules.schedule import Schedule
from ..ticks.events import Kind, Listener
from ..ticks.presence import Carried, carried, led
from ..ticks.requests import ask
from .serving import Serving


class Operating(Serving):
    """Questions and orders; every answer is a frozen dataclass."""

    def status(self) -> Status:
        """All jobs and how they stand, who leads, the locks that are held, the servers that are there.

        Of jobs over records it tells who works them and how fast; how much is left, only `records` tells.
        """
        store, roster = self._ready().store, self._roster()
        names = {name for name in store.names(self._prefix) if not hidden(name)}
        answers = store.read(sorted(names | set(roster.all)))
        now = answers[0].now if answers else store.now()
        boards = self._boards(jobs_among(names, self._prefix))
        return status_of(roster, answers, boards, self._prefix, store.address, now)

    def history(self, name: str, limit: int = 20) -> tuple[PastRun, ...]:
        """The latest runs of a job, newest first."""
        full, answer, _ = self._with_ticks(name)
        return history_of(self._ready().store.history(full, limit), answer.entry, answer.now)[:limit]

    def explain(self, name: str, tick: datetime | None = None) -> Explanation:
        """What became of a tick, the last one unless given, and why; or who leads."""
        full, answer, roster = self._known(name) if tick is None else self._with_ticks(name)
        if full in roster.posts:
            return Case(name, roster.posts[full], answer.entry, (), answer.now).lead()
        runs = self._ready().store.history(full, RUNS_KEPT)
        case = Case(name, roster.jobs.get(full), answer.entry, runs, answer.now)
        return case.explain(case.latest() if tick is None else _instant(tick))

    def schedule(self, name: str) -> Schedule:
        """When a job is due, as the fleet means it."""
        full, _, roster = self._with_ticks(name)
        schedule = roster.schedule(full)
        if schedule is None:
            raise TickoffError(f"no server told when {name} is due; name the application: --app MODULE")
        return schedule

    def trigger(self, name: str) -> JobStatus:
        """Ask the fleet to run a job once, now: the first server with a free slot does."""
        full, answer, roster = self._with_ticks(name)
        listed = roster.jobs.get(full)
        if answer.entry.paused:
            raise TickoffError(
                f"{name} is paused by {answer.entry.paused_by}: {answer.entry.paused_why}; resume it first: "
                f"tickoff resume {name}"
            )
        if listed is None:
            raise TickoffError(
                f"{name} is carried by no server; what other programs fire they run themselves"
            )
        ask(self._ready(), self._space, full, _person())
        return self._status_of(answer, listed)

    def pause(self, name: str, why: str) -> JobStatus:
        """Start no more ticks of a job, on any server; what runs goes on."""
        full, _, roster = self._known(name)
        return self._steered(full, roster, _reason(why))

    def resume(self, name: str) -> JobStatus:
        """Start ticks again; those that fell into the pause are not made up for."""
        full, _, roster = self._known(name)
        return self._steered(full, roster, None)

    def release(self, name: str, why: str) -> JobStatus:
        """Take a name away from whoever holds it, who stays out: the fence refuses what it still writes."""
        reason, (full, before, roster) = _reason(why), self._known(name)
        if not before.ok:
            raise TickoffError(f"nobody holds {name}; there is nothing to release")
        self._ready().store.evict(full, _person(), reason)
        return self._status_of(before, roster.jobs.get(full))

    def doctor(self) -> Diagnosis:
        """What is amiss with the store, the servers and the jobs, and what to do about it."""
        from importlib.metadata import version  # slow to import, and not needed to decorate

        return diagnose(self._ready(), self._space, self._own(), version("tickoff"))

    @overload
    def on(self, event: str, listener: Listener, *, job: str | None = None) -> Listener: ...

    @overload
    def on(self, event: str, *, job: str | None = None) -> Callable[[Listener], Listener]: ...

    def on(self, event: str, listener: Listener | None = None, *, job: str | None = None) -> Any:
        """Call a function with each `Event` of a kind on this server: started, ended, skipped, missed.

        Of all jobs, or of one. It is called in the thread where it happens, so it must be quick. Also as a
        decorator: `@jobs.on("missed")`.
        """
        kind = _kind(event)

        def listen(listener: Listener) -> Listener:
            self._events.on(kind, listener if job is None else self._only(job, listener))
            return listener

        return listen if listener is None else listen(listener)

    def _only(self, job: str, listener: Listener) -> Listener:
        """The listener, for one job's events; the namespace is not asked for before there is one."""
        check_name(job, "job")
        return lambda event: listener(event) if event.job == self._full(job) else None

    def _steered(self, full: str, roster: Roster, why: str | None) -> JobStatus:
        answer = self._ready().store.steer(full, _person(), why)
        self._ready().knowledge.learn(answer.entry)
        return self._status_of(answer, roster.jobs.get(full))

    def _status_of(self, answer: Answer, listed: Listed | None) -> JobStatus:
        return job_status(answer.entry.name, answer.entry, listed, self._prefix, answer.now)

    def _known(self, name: str) -> tuple[str, Answer, Roster]:
        """What is kept of a name that somebody has used; a mistyped one is refused with the right one."""
        full, roster = self._full(name), self._roster()
        (answer,) = self._ready().store.read([full])
        entry = answer.entry
        if full in roster.all or answer.ok or entry.fence or entry.steered:
            return full, answer, roster
        raise ConfigError(self._unknown(name, roster))

    def _with_ticks(self, name: str) -> tuple[str, Answer, Roster]:
        """The same of a name that has ticks, which a leader has not."""
        full, answer, roster = self._known(name)
        if full in roster.posts:
            raise TickoffError(
                f"{name} has no ticks: one server leads all the time; see who with: tickoff explain {name}"
            )
        return full, answer, roster

    def _boards(self, jobs: set[str]) -> Boards:
        """What the servers say of the jobs over records, those that this program knows itself included."""
        from ..records.progress import read_report  # which needs SQLAlchemy

        notes = self._ready().store.notes
        return {
            job: [read_report(note) for note in notes(names_of(job, self._full).board)]
            for job in jobs | set(self.record_names())
        }

    def _unknown(self, name: str, roster: Roster) -> str:
        names = set(roster.all) | set(self._ready().store.names(self._prefix))
        known = sorted(full.removeprefix(self._prefix) for full in names if not hidden(full))
        if name in self._record_jobs or name in jobs_among(names, self._prefix):
            return f"{name} is a job over records; its commands are those of: tickoff records"
        near = get_close_matches(name, known, 1)
        if near:
            return f"there is no job {name!r}; did you mean {near[0]!r}?"
        if not known:
            return f"there is no job {name!r}; this store has seen none yet"
        return f"there is no job {name!r}; see what there is with: tickoff ls"

    def _roster(self) -> Roster:
        return call_roll(self._ready(), self._space, self._own())

    def _own(self) -> list[Carried]:
        now = int(self._ready().time.now())
        return [*(carried(job, now) for job in self._full_jobs()), *map(led, self._full_posts())]

    @property
    def _space(self) -> str:
        """The namespace, read from the environment where it was not given."""
        self._full("x")
        return self._namespace or ""

    @property
    def _prefix(self) -> str:
        return full_name(self._space, "x")[:-1]


def _instant(tick: datetime) -> int:
    if tick.tzinfo is None:
        raise ConfigError(f"tick={tick} has no zone; use an aware datetime, such as one in UTC")
    return round(tick.timestamp() * 1000)


def _reason(why: str) -> str:
    if not why.strip():
        raise ConfigError("why is empty; say why, for those who find out at night")
    return printable(" ".join(why.split()))


def _kind(event: str) -> Kind:
    try:
        return Kind(event)
    except ValueError:
        known = ", ".join(Kind)
        raise ConfigError(f"event={event!r} is unknown; use one of {known}") from None


def _person() -> str:
    """Who gives an order: the user of this machine."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container without a user database
        return socket.gethostname()
