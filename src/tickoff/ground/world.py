"""What a process stands on: its clocks, its threads, its name. A simulation puts others in their place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

Step = Callable[[float], float | None]
"""What a loop does when it is due, given the time; it says when it is due again."""


class Driver(Protocol):
    """Calls a step whenever it is due."""

    def wake_by(self, due: float) -> None:
        """See to it that the next step comes at `due` or earlier."""
        ...

    def stop(self) -> None:
        """Call no more, until woken."""
        ...

    def after_fork(self) -> None:
        """Start anew in a child."""
        ...


class World(Protocol):
    """A process as its code sees it."""

    def elapsed(self) -> float:
        """Seconds since some fixed instant, suspended time included."""
        ...

    def wall(self) -> int:
        """The time as this machine has it, in ms since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, while others go on."""
        ...

    def here(self) -> str:
        """Which process of a simulation this is; empty in the real world."""
        ...

    def driver(self, name: str, step: Step) -> Driver | None:
        """What drives a loop; None: a thread of the loop's own."""
        ...

    def start(self, work: Callable[[], None]) -> bool:
        """Begin work beside the others; False: it takes a thread."""
        ...


class RealWorld:
    """The machine, and threads."""

    if sys.platform == "linux":

        def elapsed(self) -> float:
            """Seconds since some fixed instant, suspended time included."""
            return time.clock_gettime(time.CLOCK_BOOTTIME)

    else:

        def elapsed(self) -> float:
            """Seconds since some fixed instant, suspended time included."""
            return time.monotonic()

    def wall(self) -> int:
        """The time as this machine has it, in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait, while other threads go on."""
        time.sleep(seconds)

    def here(self) -> str:
        """There is one real world."""
        return ""

    def driver(self, name: str, step: Step) -> Driver | None:  # noqa: ARG002 - threads need no help
        """A thread of the loop's own."""
        return None

    def start(self, work: Callable[[], None]) -> bool:  # noqa: ARG002 - threads need no help
        """A thread of the crew's own."""
        return False


_real: World = RealWorld()
_worlds: list[World] = [_real]


def world() -> World:
    """The world this code runs in."""
    return _worlds[-1]


@contextmanager
def entered(other: World) -> Iterator[None]:
    """Put another world in the place of the real one, for a simulation; not meant for several threads."""
    _worlds.append(other)
    try:
        yield
    finally:
        _worlds.remove(other)
