"""Virtual time: events in a queue, processes as greenlets that take turns. One seed, one course of events."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from ...ground.loops import AFTER_ERROR
from ...ground.world import Driver, Step

_LATENCY = 0.0001
"""Seconds a loop needs to wake up: real ones are late, too, and so time goes on."""


Event = Callable[[], Any]
"""Something that begins; or a greenlet, which goes on."""


@dataclass(eq=False)
class Process:
    """A simulated process: its clocks, and whether it is alive or stopped."""

    name: str
    skew: float = 0.0
    """Seconds by which its wall clock is wrong."""
    rate: float = 1.0
    """How fast its clocks go."""
    booted: float = 0.0
    alive: bool = True
    stopped_until: float = 0.0
    drivers: list[Turns] = field(default_factory=list)


class Hub:
    """The world of a simulation: it knows the true time, and whose turn it is."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a course of events, no secret
        self.now = 1_800_000_000.0
        self.story: list[str] = []
        self.failures: list[str] = []
        """Loops that met an error nobody expected: real ones go on after it, and say so."""
        self._queue: list[tuple[float, int, Process | None, Event]] = []
        self._graves: list[Event] = []
        self._over = False
        self._order = itertools.count()
        self._root = getcurrent()
        self._current: Process | None = None

    # What Tickoff asks of a world

    def elapsed(self) -> float:
        """The monotonic clock of the process whose turn it is."""
        process = self._current
        return self.now if process is None else (self.now - process.booted) * process.rate

    def wall(self) -> int:
        """Its wall clock."""
        process = self._current
        skew = 0.0 if process is None else process.skew + (process.rate - 1) * (self.now - process.booted)
        return int((self.now + skew) * 1000)

    def sleep(self, seconds: float) -> None:
        """Let the others go on."""
        me, process = getcurrent(), self._current
        self.at(self.now + max(0.0, seconds), process, me)
        self._leave()

    def here(self) -> str:
        """The process whose turn it is."""
        return "" if self._current is None else self._current.name

    def driver(self, name: str, step: Step) -> Driver | None:
        """A loop of the process whose turn it is."""
        if self._current is None:
            return None
        turns = Turns(self, self._current, name, step)
        self._current.drivers.append(turns)
        return turns

    def start(self, work: Callable[[], None]) -> bool:
        """Begin work beside the others."""
        if self._over:
            return True
        if self._current is None:
            return False
        self.at(self.now, self._current, work)
        return True

    # What the simulation does with it

    @property
    def current(self) -> Process | None:
        """The process whose turn it is; None for what happens between them."""
        return self._current

    def at(self, when: float, process: Process | None, event: Event) -> None:
        """Let this happen then, to this process or to none."""
        if not self._over:
            heapq.heappush(self._queue, (when, next(self._order), process, event))

    def run(self, until: float) -> None:
        """Let everything happen that happens until then."""
        while self._queue and self._queue[0][0] <= until:
            when, _, process, event = heapq.heappop(self._queue)
            self.now = max(self.now, when)
            if process is None or self._may_go_on(process, event):
                self._take_turn(process, event)
        self.now = until

    def close(self) -> None:
        """Nothing happens any more; what was under way is dropped."""
        self._over = True
        self._queue.clear()
        self._graves.clear()

    def tell(self, line: str) -> None:
        """Add a line to the story."""
        who = self._current.name if self._current else "-"
        self.story.append(f"{self.now - 1_800_000_000.0:10.3f} {who:<10} {line}")

    def fail(self, line: str) -> None:
        """Note what must not happen, in the story, too."""
        self.tell(line)
        self.failures.append(f"{self._current.name if self._current else '-'} failed in {line}")

    def die(self) -> None:
        """End the process whose turn it is, as kill -9 does: nothing of it runs any more."""
        if self._current is not None:
            self._current.alive = False
            self.tell("killed")
            self._graves.append(getcurrent())  # else it would be woken to clean up, which the dead do not
            self._leave()

    def local(self, process: Process, due: float) -> float:
        """The true time at which the monotonic clock of a process shows this."""
        return process.booted + due / process.rate

    def _may_go_on(self, process: Process, event: Event) -> bool:
        if not process.alive:
            self._graves.append(event)
        elif process.stopped_until > self.now:
            self.at(process.stopped_until, process, event)
        else:
            return True
        return False

    def _take_turn(self, process: Process | None, event: Event) -> None:
        self._current = process
        try:
            (event if isinstance(event, greenlet) else greenlet(event, parent=self._root)).switch()
        finally:
            self._current = None

    def _leave(self) -> None:
        """Give the turn back; it comes again, unless this process died meanwhile."""
        process = self._current
        self._root.switch()
        self._current = process


class Turns:
    """What drives a loop of a simulated process: events instead of a thread."""

    def __init__(self, hub: Hub, process: Process, name: str, step: Step) -> None:
        self._hub = hub
        self._process = process
        self._name = name
        self._step = step
        self._wake = math.inf
        self._at_work = False

    def wake_by(self, due: float) -> None:
        """See to it that the next step comes at `due` or earlier."""
        if due < self._wake:
            self._wake = due
            self._plan()

    def stop(self) -> None:
        """Step no more, until woken."""
        self._wake = math.inf

    def after_fork(self) -> None:
        """Simulated processes do not fork."""

    def _plan(self) -> None:
        if not self._at_work and self._wake < math.inf:
            when = max(self._hub.now, self._hub.local(self._process, self._wake)) + _LATENCY
            self._hub.at(when, self._process, self._turn)

    def _turn(self) -> None:
        if self._at_work or self._wake > self._hub.elapsed():
            return  # another event was quicker, or the loop was told otherwise
        self._wake, self._at_work = math.inf, True
        due = self._guarded_step()
        self._at_work = False
        self._wake = self._wake if due is None else min(self._wake, due)
        self._plan()

    def _guarded_step(self) -> float | None:
        try:
            return self._step(self._hub.elapsed())
        except Exception as error:  # noqa: BLE001 - like the real loop; a violation of the course all the same
            self._hub.fail(f"{self._name}: {type(error).__name__}: {error}")
            return self._hub.elapsed() + AFTER_ERROR
