"""Which tick each job is to be raced for next, and when: in the store's time, which is an argument."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from ..model import Answer, Entry, Why
from .job import Job

LATE_START = 60_000
"""A server that starts takes the last tick if it is not older (ms), so that a deploy loses none."""

_POLL = 1000
"""How often (ms) a name is asked for that is held by somebody who runs no tick of it."""

_SOON = 50
"""A moment (ms) after a lease runs out, when it is surely over."""

_FIRST_RETRY = 1000
"""The pause (ms) before a failed tick is started again; it doubles with each attempt."""


@dataclass(slots=True)
class Place:
    """Where a job stands: the tick to be started, the one after it, and when to race."""

    job: Job
    tick: int
    then: int | None
    at: float


class Agenda:
    """The places of all jobs, and which of them are due."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._places: dict[str, Place] = {}
        self._heap: list[tuple[float, str]] = []
        self._ready: dict[str, Place] = {}
        self._over_at = math.inf

    @property
    def names(self) -> list[str]:
        """The names of all jobs."""
        return list(self._jobs)

    def begin(self, entries: Mapping[str, Entry], now: int) -> None:
        """Find every job's place from what the store knows of it."""
        for job in self._jobs.values():
            self._enter(job, first_tick(job, entries.get(job.name, Entry(name=job.name)), now))

    def look(self, now: float) -> int:
        """See whose time has come; how many places are ready, each at the latest tick there is, until moved.

        What comes at once stands in a random order from then on, another one on each server: else the first
        servers would take the same jobs, and wait for each other.
        """
        come = []
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            place = self._places.get(name)
            if place is not None and place.at == at:
                come.append(place)
        random.shuffle(come)
        for place in come:
            self._is_ready(place)
        if self._over_at <= now:
            self._catch_up_all(now)
        return len(self._ready)

    def first(self, count: int) -> list[Place]:
        """So many of the places that are ready: in a rush, listing all of them for each trip takes long."""
        return list(islice(self._ready.values(), count))

    def move_on(self, place: Place) -> None:
        """Its tick was won, or let go: look to the next one."""
        self._enter(place.job, place.then)

    def refused(self, place: Place, answer: Answer, now: float) -> None:
        """Its race was not won: try again later, or look to the next tick."""
        wait = wait_after(place, answer)
        if wait is None:
            self.move_on(place)
        else:
            self.again(place, now + wait)

    def again(self, place: Place, at: float) -> None:
        """Race for the same tick at another time, or for the next one if that comes first."""
        if place.then is not None and place.then <= at:
            self._enter(place.job, place.then)
        else:
            self._put(Place(place.job, place.tick, place.then, at))

    def failed(self, job: Job, tick: int, attempt: int, now: float) -> None:
        """A tick ended badly and may be started again: after a pause, unless a later one is due by then."""
        again = now + _FIRST_RETRY * 2.0 ** (attempt - 1)
        then = job.schedule.after(tick)
        if then is None or again < then:
            self._put(Place(job, tick, then, again))

    @property
    def wake(self) -> float | None:
        """When the next place will be ready."""
        return self._heap[0][0] if self._heap else None

    def next_tick(self, name: str) -> int | None:
        """The tick a job looks to."""
        place = self._places.get(name)
        return place.tick if place else None

    def _enter(self, job: Job, tick: int | None) -> None:
        if tick is None:
            self._ready.pop(job.name, None)
            self._places.pop(job.name, None)
            return
        self._put(Place(job, tick, job.schedule.after(tick), tick + job.delay(tick)))

    def _put(self, place: Place) -> None:
        self._ready.pop(place.job.name, None)
        self._places[place.job.name] = place
        heapq.heappush(self._heap, (place.at, place.job.name))

    def _is_ready(self, place: Place) -> None:
        self._ready[place.job.name] = place
        if place.then is not None:
            self._over_at = min(self._over_at, place.then)

    def _catch_up_all(self, now: float) -> None:
        self._over_at = math.inf
        for place in list(self._ready.values()):
            if place.then is not None and place.then <= now:
                self._catch_up(place, now)
            else:
                self._is_ready(place)

    def _catch_up(self, place: Place, now: float) -> None:
        """Drop a tick that was not started until the next was due."""
        latest = place.job.schedule.upto(int(now))
        self._enter(place.job, place.then if latest is None else max(latest, place.then or 0))
        entered = self._places.get(place.job.name)
        if entered is not None and entered.at <= now:
            self._is_ready(entered)


def first_tick(job: Job, entry: Entry, now: int) -> int | None:
    """The tick a server that starts looks to: the last one if it is still to be run, else the next."""
    last = job.schedule.upto(now)
    if last is not None and _still_to_run(job, entry, last, now):
        return last
    return job.schedule.after(now)


def _still_to_run(job: Job, entry: Entry, last: int, now: int) -> bool:
    if not (entry.scheduled or entry.decided):  # seen for the first time: nothing older
        return False
    if last <= entry.decided:
        return (job.again or entry.open) and last == entry.decided and entry.finished < last
    fell_into_a_pause = last <= entry.steered
    return not fell_into_a_pause and (job.catch_up or now - last <= LATE_START)


def wait_after(place: Place, answer: Answer) -> float | None:
    """How long (ms) to wait after a refusal before the tick is raced for again; None: there is no use.

    A length of time, because our estimate of the store's clock may be a little off, and an early one would
    race again and again until its tick has come.
    """
    entry, now = answer.entry, answer.now
    match answer.why:
        case Why.TOO_EARLY:
            return max(place.tick + place.job.delay(place.tick) - now, 1)
        case Why.HELD if entry.live(now) and entry.tick and not entry.manual:
            mine = entry.tick == place.tick and place.job.again
            return entry.until + _SOON - now if mine else None
        case Why.HELD:
            end = entry.until if entry.live(now) else entry.barrier
            return max(_SOON, min(end + _SOON - now, _POLL))
        case _:
            return None
