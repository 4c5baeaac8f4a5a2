"""A simulated fleet: servers that run the user's application, die, come back, and share one store."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ... import Tickoff
from ...ground.world import entered
from ...model import Outcome
from ...ticks.events import Event, Kind
from ...ticks.job import Job
from .hub import Hub, Process
from .report import Expectation, Report, Start
from .watched import WatchedStore
from .wire import Faults, Weather, Wire

_log = logging.getLogger("tickoff")

Define = Callable[[Tickoff], object]
"""Decorates the jobs of the application under test."""

_SETTLING = 150.0
"""Seconds of calm after the faults, before everything must go well again."""

_CALM = 60.0
"""Seconds in which it then must."""


class Fleet:
    """The servers, and what is written down of them."""

    def __init__(self, hub: Hub, define: Define, weather: Weather, report: Report) -> None:
        self._hub = hub
        self._define = define
        self._weather = weather
        self._report = report
        self._store = WatchedStore(hub, weather, report)
        self._born = 0
        self._wires: list[tuple[Process, Wire]] = []
        weather.revive = lambda: hub.at(hub.now + hub.random.uniform(0.5, 20), None, self.boot)
        weather.lose_everything = self._lose_everything
        weather.steer, weather.go_on = self._store.steer_at_random, self._store.go_on
        self.jobs: list[Job] = []

    @property
    def calls(self) -> int:
        """How often servers asked the store."""
        return sum(wire.calls for _, wire in self._wires)

    def lost_wins(self) -> list[str]:
        """What servers that live won without learning of it: an answer that never came was taken for a no."""
        unclear = {token for process, wire in self._wires if process.alive for token in wire.unclear}
        return [
            f"{grant.name} was granted to {grant.token[:6]}, whose server never asked what became of its race"
            for grant in self._report.grants
            if grant.token in unclear
        ]

    def boot(self) -> None:
        """Start a server with clocks of its own."""
        self._born += 1
        faults, chance = self._weather.faults, self._hub.random
        process = Process(
            f"server-{self._born}",
            skew=chance.uniform(-faults.skew, faults.skew),
            rate=1 + chance.uniform(-faults.drift, faults.drift),
            booted=self._hub.now - chance.uniform(10, 1000),
        )
        self._hub.at(self._hub.now + chance.uniform(0, 0.5), process, lambda: self._serve(process))

    def _serve(self, process: Process) -> None:
        wire = Wire(self._store, self._weather)
        self._wires.append((process, wire))
        jobs = Tickoff(wire)
        self._define(jobs)
        jobs._events.on(None, self._note)
        self.jobs = jobs._full_jobs()
        self._hub.tell("starts")
        jobs._start()

    def _note(self, event: Event) -> None:
        """What the jobs of a server did, and a guarded write at the end of each."""
        process = self._hub.current
        start = Start(
            job=event.job,
            tick=event.tick,
            fence=event.fence,
            attempt=event.attempt,
            server=process.name if process else "",
            at=self._hub.now,
        )
        if event.kind is Kind.STARTED and not event.manual:
            self._report.starts.append(start)
        if event.kind is Kind.ENDED:
            self._write(event)
            if event.outcome is Outcome.OK:
                self._report.ends.append(start)

    def _write(self, event: Event) -> None:
        """The resource refuses a fence older than the highest it has seen."""
        highest = max((fence for job, fence in self._report.writes if job == event.job), default=0)
        if event.fence >= highest:
            self._report.writes.append((event.job, event.fence))
        else:
            self._report.refused += 1

    def _lose_everything(self) -> None:
        self._report.forgot = True
        self._store.lose_everything()


def simulate(
    define: Define, *, seed: int, servers: int = 3, seconds: float = 120.0, faults: Faults | None = None
) -> Report:
    """Run an application on a simulated fleet for a while, with faults and then without; what was seen.

    `define(jobs)` decorates the jobs on the `Tickoff` it is given, as an application does; it is called for
    every server that starts. `tickoff.testing.sleep` is how long-running jobs wait in virtual time. The same
    seed takes the same course.
    """
    report = Report(seed)
    hub = Hub(seed)
    weather = Weather(hub, faults or Faults())
    fleet = Fleet(hub, define, weather, report)
    with entered(hub), _own_chance(seed), _told(hub):
        for _ in range(servers):
            hub.at(hub.now, None, fleet.boot)
        hub.run(hub.now + seconds)
        weather.calm()
        hub.tell("no more faults")
        hub.run(hub.now + _SETTLING)
        begin = hub.now
        hub.run(begin + _CALM)
        end = hub.now
        hub.run(end + _SETTLING)
        hub.close()
    report.calls, report.story = fleet.calls, hub.story
    report.violations += hub.failures + fleet.lost_wins()
    report.check([_expected(job, begin, end) for job in fleet.jobs])
    return report


def _expected(job: Job, begin: float, end: float) -> Expectation:
    due, tick = [], job.schedule.after(int(begin * 1000))
    while tick is not None and tick < end * 1000:
        due.append(tick)
        tick = job.schedule.after(tick)
    return Expectation(job=job.name, attempts=job.attempts, due=due)


@contextmanager
def _own_chance(seed: int) -> Iterator[None]:
    """The policy's own dice, thrown as the seed wants it."""
    former = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(former)


@contextmanager
def _told(hub: Hub) -> Iterator[None]:
    """What is logged becomes part of the story."""
    handler = logging.Handler()
    handler.emit = lambda record: hub.tell(f"log: {record.getMessage()}")  # type: ignore[method-assign] # the shortest handler
    propagate, level = _log.propagate, _log.level
    _log.addHandler(handler)
    _log.propagate = False
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        _log.propagate = propagate
        _log.setLevel(level)
