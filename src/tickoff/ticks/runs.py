"""Ticks at work on this server: each in a slot, sync ones in threads, async ones on the shared loop.

A run ends once: by its function, by its timeout, or because the server stops. Its slot is free again when the
function has returned.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable

from ..ground.clocks import elapsed
from ..ground.crew import Crew
from ..ground.eventloop import EventLoop, Interrupt
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..model import Outcome
from ..work import End, caught, caught_async, end_of, overran
from .events import Event, Events, Kind
from .job import Job
from .tick import Tick

_STOPPED = End(Outcome.FAILED, "the server stopped before it ended")


class Course:
    """One run under way."""

    __slots__ = (
        "at",
        "began",
        "closed",
        "interrupt",
        "job",
        "lease",
        "manual",
        "overdue",
        "reason",
    )

    def __init__(self, job: Job, lease: Lease, at: int, *, manual: bool) -> None:
        self.job = job
        self.lease = lease
        self.at = at
        self.manual = manual
        self.began = elapsed()
        self.overdue = math.inf if job.timeout is None else self.began + job.timeout
        self.reason: End | None = None
        self.closed = False
        self.interrupt = Interrupt()

    def call(self) -> object:
        """Call the function, with the tick if it asks for it."""
        if not self.job.wants_tick:
            return self.job.work()
        return self.job.work(tick=Tick(self.job.name, self.lease, self.at, manual=self.manual))

    def cancel(self, reason: End) -> None:
        """Interrupt an async function; a sync one is told by its tick."""
        self.reason = self.reason or reason
        self.interrupt.cancel()

    def lost(self) -> None:
        """Its lease was lost."""
        self.cancel(End(Outcome.LOST, self.lease.why_lost))

    def end(self, error: BaseException | None) -> End:
        """How it ended; what was done under a lost lease is lost, whatever the function thinks of it."""
        if isinstance(error, asyncio.CancelledError) and self.reason:
            return self.reason
        end = end_of(error)
        if self.lease.lost and end.outcome is Outcome.OK:
            return End(Outcome.LOST, f"{self.lease.why_lost}; the work itself ended ok")
        return end


class Runs:
    """The slots of a server."""

    def __init__(self, referee: Referee, loop: EventLoop, events: Events, slots: int) -> None:
        self._referee = referee
        self._eventloop = loop
        self._events = events
        self._slots = slots
        self._crew = Crew("job")
        self._guard = threading.Lock()
        self._courses: set[Course] = set()
        self._timeouts = Loop("tickoff-timeouts", self.step)
        self.when_free: Callable[[], None] = _nothing
        self.when_failed: Callable[[Job, int, int], None] = _nobody_retries

    @property
    def slots(self) -> int:
        """How many runs there can be at a time."""
        return self._slots

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._slots - len(self._courses)

    def start(self, job: Job, lease: Lease, at: int, *, manual: bool = False) -> None:
        """Begin the run of a tick that was won."""
        course = Course(job, lease, at, manual=manual)
        with self._guard:
            self._courses.add(course)
        self._tell(course, Kind.STARTED, None)
        try:
            self._begin(course)
        except Exception as error:  # noqa: BLE001 - it ends the run, and is reported
            self._returned(course, error)  # or it would hold its slot, and its lease, for ever
        if course.overdue < math.inf:
            self._timeouts.wake_by(course.overdue)

    def _begin(self, course: Course) -> None:
        lease = course.lease
        if course.job.asynchronous:
            lease.on_loss(course.lost)
            self._eventloop.begin(self._run_async(course))
        else:
            self._crew.start(lambda: self._run(course))

    def step(self, now: float) -> float | None:
        """End the runs whose time is up; when the next one's is."""
        with self._guard:
            courses = [course for course in self._courses if not course.closed]
        for course in courses:
            if course.overdue <= now and course.job.timeout is not None:
                self._interrupt(course, overran(course.job.timeout))
        return min((course.overdue for course in courses if not course.closed), default=None)

    def stop(self) -> None:
        """End the runs that are left, and let the threads go."""
        with self._guard:
            courses = list(self._courses)
        for course in courses:
            self._interrupt(course, _STOPPED)
        self._timeouts.stop()
        self._crew.dismiss()

    def _run(self, course: Course) -> None:
        # closed: the server stopped, or its time was up, before a thread was free
        self._returned(course, None if course.closed else caught(course.call))

    async def _run_async(self, course: Course) -> None:
        self._returned(course, await caught_async(course.call, course.interrupt))

    def _returned(self, course: Course, error: BaseException | None) -> None:
        self._close(course, course.end(error), error)
        course.lease.unheard()
        with self._guard:
            self._courses.discard(course)
        self.when_free()

    def _interrupt(self, course: Course, end: End) -> None:
        """End a run before its function does: it is recorded at once, and the function told to stop."""
        self._close(course, end, None)
        course.cancel(end)
        course.lease.lose(end.error)

    def _close(self, course: Course, end: End, error: BaseException | None) -> None:
        with self._guard:
            if course.closed:
                return
            course.closed = True
        self._referee.finish(course.lease, end, course.job.attempts)
        self._tell(course, Kind.ENDED, end, error)
        again = end.outcome is not Outcome.OK and course.lease.attempt < course.job.attempts
        if again and not course.manual:
            self.when_failed(course.job, course.at, course.lease.attempt)

    def _tell(self, course: Course, kind: Kind, end: End | None, error: BaseException | None = None) -> None:
        outcome = end.outcome if end else None
        if not self._events.heard(kind, outcome):
            return
        self._events.tell(
            Event(
                kind=kind,
                job=course.job.name,
                tick=course.at,
                fence=course.lease.fence,
                attempt=course.lease.attempt,
                manual=course.manual,
                outcome=outcome,
                seconds=elapsed() - course.began,
                error=end.error if end else "",
                cause=error,
            )
        )


def _nothing() -> None:
    """Nobody waits for a slot."""


def _nobody_retries(_job: Job, _tick: int, _attempt: int) -> None:
    """Nobody starts a failed tick again."""
