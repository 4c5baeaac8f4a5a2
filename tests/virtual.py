"""Servers in virtual time: the loops of a fleet are stepped by hand, each when due. No thread, no sleep."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tickoff import (
    keeper,
    knowledge,
    leader,
    lease,
    loops,
    presence,
    referee,
    requests,
    runs,
    settler,
    storetime,
    ticks,
)
from tickoff.errors import StoreUnreachable
from tickoff.eventloop import EventLoop
from tickoff.events import Event, Events
from tickoff.job import Job
from tickoff.loops import Loop
from tickoff.model import Answer, Bid, Ending, Run
from tickoff.referee import Referee
from tickoff.requests import Requests
from tickoff.runs import Course, Runs
from tickoff.schedule import Schedule, every
from tickoff.stores.memory import MemoryStore
from tickoff.ticks import Ticks

BEGIN = 1_000_000.0
"""Where the monotonic clock of a world begins, in seconds."""

NOON = 1_749_999_600_000
"""Where the clock of its store begins, in ms: on a whole hour, so the first tick is one period later."""

_TIMED = (
    keeper,
    knowledge,
    leader,
    lease,
    loops,
    presence,
    referee,
    requests,
    runs,
    settler,
    storetime,
    ticks,
)


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

    def __init__(self, world: World, store: MemoryStore, jobs: Sequence[Job], slots: int) -> None:
        self.world = world
        self.events: list[Event] = []
        told = Events()
        told.on(None, self.events.append)
        self.referee = Referee(store)
        self.runs = Runs(self.referee, EventLoop(), told, slots)
        self.runs._crew = self  # type: ignore[assignment] # it hands its work to the world
        self.ticks = Ticks(self.referee, jobs, self.runs, told)
        self.requests = Requests(self.referee, "", jobs, self.runs)

    def start(self, work: Callable[[], None]) -> None:
        """Call the work when it is to end: in between it is at work."""
        course: Course = inspect.getclosurevars(work).nonlocals["course"]
        lasts = self.world.lasts.get(course.job.name, 0.0)
        self.world.works.append((self.world.now + lasts, self, work))

    def dismiss(self) -> None:
        """There are no threads."""

    def outcomes(self) -> list[str]:
        """How its ticks ended, in order."""
        return [str(event.outcome) for event in self.events if event.outcome]


class World:
    """A fleet, its store, and the time they share."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = BEGIN
        self.ahead = 0
        self.lasts: dict[str, float] = {}
        self.works: list[tuple[float, VirtualServer, Callable[[], None]]] = []
        self.store = WatchedStore(self.store_now)
        self._due: dict[Loop, tuple[float, VirtualServer | None]] = {}
        self._building: dict[Loop, VirtualServer] = {}
        self._made: list[Loop] = []
        for module in _TIMED:
            monkeypatch.setattr(module, "elapsed", lambda: self.now)
        monkeypatch.setattr(Loop, "wake_by", lambda loop, due: self._wake_by(loop, due))
        monkeypatch.setattr(Loop, "stop", lambda loop: self._due.pop(loop, None))
        monkeypatch.setattr(Loop, "after_fork", lambda loop: self._made.append(loop))
        monkeypatch.setattr(keeper, "_judge", [])

    def store_now(self) -> int:
        """The clock of the store; `ahead` sets it."""
        return NOON + self.ahead + round((self.now - BEGIN) * 1000)

    def server(self, *jobs: Job, slots: int = 8, store: MemoryStore | None = None) -> VirtualServer:
        """A server that starts now."""
        keeper._judge.clear()  # one per process, and each of ours is one
        self._made.clear()
        made = VirtualServer(self, store or self.store, [replace(one) for one in jobs], slots)
        self._building.update(dict.fromkeys(self._made, made))
        made.ticks.start()
        made.requests.start()
        return made

    def kill(self, server: VirtualServer) -> None:
        """End a server where it stands: nothing of it is called any more."""
        self.works = [one for one in self.works if one[1] is not server]
        self._due = {loop: due for loop, due in self._due.items() if due[1] is not server}
        self._building = {loop: one for loop, one in self._building.items() if one is not server}

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
        soonest = min((due for due, _ in self._due.values()), default=math.inf)
        return min(soonest, min((at for at, _, _ in self.works), default=math.inf))

    def _do_what_is_due(self) -> None:
        works = [one for one in self.works if one[0] <= self.now]
        self.works = [one for one in self.works if one[0] > self.now]
        for _, _, work in works:
            work()
        for loop in [loop for loop, (due, _) in self._due.items() if due <= self.now]:
            if loop in self._due:
                _, server = self._due.pop(loop)
                again = loop._step(self.now)
                if again is not None:
                    self._wake(loop, again, server)

    def _wake_by(self, loop: Loop, due: float) -> None:
        self._wake(loop, due, self._building.get(loop))

    def _wake(self, loop: Loop, due: float, server: VirtualServer | None) -> None:
        if due < math.inf:
            former = self._due.get(loop, (math.inf, None))[0]
            self._due[loop] = (min(due, former), server)
