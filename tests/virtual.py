"""Servers in virtual time: the loops of a fleet are stepped by hand, each when due. No thread, no sleep."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from tickoff.errors import StoreUnreachable
from tickoff.ground.eventloop import EventLoop
from tickoff.ground.world import Step
from tickoff.leases.referee import Referee
from tickoff.model import Answer, Bid, Ending, Run
from tickoff.schedules.schedule import Schedule, every
from tickoff.stores.memory import MemoryStore
from tickoff.ticks.events import Event, Events
from tickoff.ticks.job import Job
from tickoff.ticks.requests import Requests
from tickoff.ticks.runs import Course, Runs
from tickoff.ticks.scheduler import Ticks

BEGIN = 1_000_000.0
"""Where the monotonic clock of a world begins, in seconds."""

NOON = 1_749_999_600_000
"""Where the clock of its store begins, in ms: on a whole hour, so the first tick is one period later."""


def job(name: str = "job", schedule: Schedule | None = None, **options: Any) -> Job:
    """A job that does nothing once a minute, unless told otherwise."""
    told: dict[str, Any] = {"work": lambda: None, "ttl": 60_000, **options}
    return Job(name=name, schedule=schedule or every("1m"), **told)


class WatchedStore(MemoryStore):
    """Counts trips, and can be out of reach."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.down = False
        self.trips: list[tuple[str, int]] = []

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        self._reach("take", len(bids))
        return super().take(bids, limit)

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        self._reach("settle", len(endings))
        return super().settle(endings)

    def read(self, names: Sequence[str]) -> list[Answer]:
        self._reach("read", len(names))
        return super().read(names)

    def now(self) -> int:
        self._reach("now", 0)
        return super().now()

    def count(self, verb: str) -> int:
        """How many trips there were of this kind."""
        return sum(kind == verb for kind, _ in self.trips)

    def _reach(self, verb: str, size: int) -> None:
        if self.down:
            raise StoreUnreachable("the store is down")
        self.trips.append((verb, size))


class VirtualServer:
    """The scheduler of one server."""

    def __init__(self, store: MemoryStore, jobs: Sequence[Job], slots: int) -> None:
        self.events: list[Event] = []
        told = Events()
        told.on(None, self.events.append)
        self.referee = Referee(store)
        self.runs = Runs(self.referee, EventLoop(), told, slots)
        self.ticks = Ticks(self.referee, jobs, self.runs, told)
        self.requests = Requests(self.referee, "", jobs, self.runs)

    def outcomes(self) -> list[str]:
        """How its ticks ended, in order."""
        return [str(event.outcome) for event in self.events if event.outcome]


class VirtualDriver:
    """When a loop is due, and whose it is."""

    def __init__(self, step: Step, here: str) -> None:
        self.step = step
        self.here = here
        self.due = math.inf

    def wake_by(self, due: float) -> None:
        """See to it that the next step comes at `due` or earlier."""
        self.due = min(self.due, due)

    def stop(self) -> None:
        """Call no more, until woken."""
        self.due = math.inf

    def after_fork(self) -> None:
        """There are no forks here."""


@dataclass
class Work:
    """A run under way: the function is called when it is to end."""

    ends: float
    here: str
    call: Callable[[], None]


class World:
    """A fleet, its store, and the time they share."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.ahead = 0
        self.lasts: dict[str, float] = {}
        self.works: list[Work] = []
        self.store = WatchedStore(self.wall)
        self._drivers: list[VirtualDriver] = []
        self._here = "outside"
        self._names: dict[str, VirtualServer] = {}

    def elapsed(self) -> float:
        """Seconds since some fixed instant."""
        return self.now

    def wall(self) -> int:
        """The clock of the store; `ahead` sets it."""
        return NOON + self.ahead + round((self.now - BEGIN) * 1000)

    def sleep(self, seconds: float) -> None:
        """Nobody sleeps here."""
        raise NotImplementedError

    def here(self) -> str:
        """The server that is at work."""
        return self._here

    def driver(self, name: str, step: Step) -> VirtualDriver:
        """Steps are called by `run`."""
        self._drivers.append(VirtualDriver(step, self._here))
        return self._drivers[-1]

    def start(self, work: Callable[[], None]) -> bool:
        """Call the work when it is to end."""
        course: Course = inspect.getclosurevars(work).nonlocals["course"]
        self.works.append(Work(self.now + self.lasts.get(course.job.name, 0.0), self._here, work))
        return True

    def server(self, *jobs: Job, slots: int = 8, store: object = None) -> VirtualServer:
        """A server that starts now."""
        with self._at(f"server-{len(self._names)}") as here:
            made = VirtualServer(
                cast("MemoryStore", store or self.store), [replace(one) for one in jobs], slots
            )
            self._names[here] = made
            made.ticks.start()
            made.requests.start()
        return made

    def at_work(self) -> list[VirtualServer]:
        """The servers that run something."""
        return [self._names[work.here] for work in self.works]

    def kill(self, server: VirtualServer) -> None:
        """End a server where it stands: nothing of it is called any more."""
        (here,) = (name for name, one in self._names.items() if one is server)
        self.works = [work for work in self.works if work.here != here]
        self._drivers = [driver for driver in self._drivers if driver.here != here]

    def run(self, seconds: float) -> None:
        """Let time go by, and do what is due, in its order."""
        end = self.now + seconds
        while (due := self._next()) <= end:
            self.now = max(self.now, due)
            self._do_what_is_due()
        self.now = end

    def outcomes(self, name: str = "job") -> list[tuple[float, str]]:
        """The history of a job, oldest first: seconds of the tick since the world began, and its outcome."""
        return [((run.tick - NOON) / 1000, run.outcome.value) for run in self.history(name)]

    def history(self, name: str = "job") -> list[Run]:
        """The runs of a job, oldest first."""
        return self.store.history(name, 1000)[::-1]

    def _next(self) -> float:
        soonest = min((driver.due for driver in self._drivers), default=math.inf)
        return min(soonest, min((work.ends for work in self.works), default=math.inf))

    def _do_what_is_due(self) -> None:
        works = [work for work in self.works if work.ends <= self.now]
        self.works = [work for work in self.works if work.ends > self.now]
        for work in works:
            with self._at(work.here):
                work.call()
        for driver in [driver for driver in self._drivers if driver.due <= self.now]:
            driver.due = math.inf
            with self._at(driver.here):
                again = driver.step(self.now)
            if again is not None:
                driver.wake_by(again)

    @contextmanager
    def _at(self, here: str) -> Iterator[str]:
        former, self._here = self._here, here
        try:
            yield here
        finally:
            self._here = former
