"""The scheduler of a server: it races for every tick that is due, for as many as it has free slots for."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..model import Answer, Bid, Why
from ..outage import Outage
from .agenda import Agenda, Place
from .events import Event, Events, Kind
from .job import Job
from .runs import Runs

_NO_RACE = "cannot race for ticks: %s"

_RETRY = 1.0
"""Seconds between two tries to reach a store that does not answer."""

_LOOK = 5.0
"""Seconds after which the wake-up is reckoned anew: the store's clock may be set, or drift from ours."""

_TOGETHER = 1000
"""So many bids travel together at first; later as many as it probably takes to fill the free slots."""

_RUSH = 32
"""So many ticks due at once are a rush: what ended is settled after it."""

_A_SLOT = 8
"""Bids for each free slot at most, while trips pay."""


class Ticks:
    """One loop over the agenda of all jobs."""

    def __init__(self, referee: Referee, jobs: Sequence[Job], runs: Runs, events: Events) -> None:
        self._referee = referee
        self._agenda = Agenda(jobs)
        self._runs = runs
        self._events = events
        self._began = False
        self._outage = Outage()
        self._starved = False
        self._quiet = False
        self._credit = 0
        self._luck = 1.0
        self._failures: deque[tuple[Job, int, int]] = deque()
        self._loop = Loop("tickoff-ticks", self.step)
        runs.when_free = self._slot_is_free
        runs.when_failed = self._failed

    def start(self) -> None:
        """Begin; a store that cannot be reached now is tried again."""
        try:
            self._begin()
        except StoreUnreachable as error:
            self._outage.met(_NO_RACE, error)
        self._loop.wake_by(elapsed())

    def quiet(self) -> None:
        """Race no more; what runs goes on."""
        self._quiet = True
        self._loop.stop()

    def busy(self) -> bool:
        """Whether ticks are at work."""
        return self._runs.free < self._runs.slots

    def stop(self) -> None:
        """End what is at work."""
        self.quiet()
        self._runs.stop()

    def step(self, now: float) -> float | None:
        """Race for what is due; when the next tick is."""
        if not self._began:
            try:
                self._begin()
            except StoreUnreachable as error:
                self._outage.met(_NO_RACE, error)
                return now + _RETRY
        while self._failures:
            self._agenda.failed(*self._failures.popleft(), self._referee.time.now())
        while not self._quiet and self._race():
            pass
        wake = self._agenda.wake
        return None if wake is None else min(self._referee.time.local(wake), now + _LOOK)

    def next_tick(self, name: str) -> int | None:
        """The tick of a job that this server looks to."""
        return self._agenda.next_tick(name)

    def _begin(self) -> None:
        """Learn where every job stands."""
        names, sent = self._agenda.names, elapsed()
        answers = self._referee.store.read(names)
        now = self._referee.store.now() if not answers else answers[0].now
        self._referee.time.learn(now, sent, elapsed())
        for answer in answers:
            self._referee.knowledge.learn(answer.entry)
        self._agenda.begin({answer.entry.name: answer.entry for answer in answers}, now)
        self._began = True

    def _race(self) -> bool:
        """One trip for the ticks that are due; whether another one is worth while."""
        due = self._agenda.look(self._referee.time.now())
        self._starved = due > 0  # first, or a slot that becomes free just now would tell nobody
        free = self._runs.free
        if not due:
            self._credit = 0
        if not due or free <= 0:
            return False
        self._starved = False
        places = self._agenda.first(self._width(free, due))
        if due > _RUSH:
            self._referee.settler.make_way()
        try:
            verdicts = self._referee.take([self._bid(place) for place in places], free)
        except StoreUnreachable as error:
            self._unreachable(places, error)
            return False
        self._outage.over("%s answers again", self._referee.store.address)
        self._learn_luck(verdicts)
        for place, verdict in zip(places, verdicts, strict=True):
            self._concluded(place, verdict)
        return True

    def _width(self, free: int, due: int) -> int:
        """How many to race for: few while the wins pay for the trips, and all once they do not.

        So no server makes more than one trip more than it wins.
        """
        if self._credit > 0:
            return math.ceil(free / max(self._luck, 1 / _A_SLOT))
        return max(_TOGETHER, _A_SLOT * free) if self._credit == 0 else due

    def _learn_luck(self, verdicts: Sequence[Lease | Answer | None]) -> None:
        """What share of the races that were decided this server won: all where it is alone."""
        won = sum(isinstance(verdict, Lease) for verdict in verdicts)
        decided = len(verdicts) - verdicts.count(None)
        self._credit += won - 1
        self._luck = won / decided if decided else 1.0

    def _bid(self, place: Place) -> Bid:
        job = place.job
        return self._referee.tick_bid(
            job.name, job.ttl, place.tick, attempts=job.attempts, takeover=job.takeover
        )

    def _concluded(self, place: Place, verdict: Lease | Answer | None) -> None:
        if isinstance(verdict, Lease):
            self._agenda.move_on(place)
            self._won(place, verdict)
        elif verdict is not None:
            self._report_skip(place, verdict)
            self._agenda.refused(place, verdict, self._referee.time.now())

    def _won(self, place: Place, lease: Lease) -> None:
        if self._quiet:  # won while this server stopped: given back unstarted, for another one
            self._referee.leave(lease)
        else:
            self._runs.start(place.job, lease, place.tick)

    def _unreachable(self, places: Sequence[Place], error: StoreUnreachable) -> None:
        """Nobody knows who won: a patient job asks again, the others let the tick go."""
        self._outage.met(_NO_RACE, error)
        again = self._referee.time.now() + _RETRY * 1000
        for place in places:
            if place.job.patient:
                self._agenda.again(place, again)
            else:
                self._agenda.move_on(place)

    def _slot_is_free(self) -> None:
        if self._starved and not self._quiet:
            self._loop.wake_by(elapsed())

    def _failed(self, job: Job, tick: int, attempt: int) -> None:
        self._failures.append((job, tick, attempt))
        if not self._quiet:
            self._loop.wake_by(elapsed())

    def _report_skip(self, place: Place, answer: Answer) -> None:
        """Told by the one server whose race decided that the tick is skipped."""
        entry = answer.entry
        if (
            entry.decided != place.tick
            or answer.why not in (Why.HELD, Why.PAUSED)
            or entry.tick == place.tick
        ):
            return
        why = f"{entry.owner} is still at work on the tick before"
        if answer.why is Why.PAUSED:
            why = f"paused by {entry.paused_by}: {entry.paused_why}"
        self._events.tell(Event(kind=Kind.SKIPPED, job=place.job.name, tick=place.tick, error=why))
