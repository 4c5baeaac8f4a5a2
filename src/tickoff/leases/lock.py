"""`jobs.lock(...)`: the lease as a context manager that raises when it lost, in both colours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import TracebackType

from ..errors import LockHeld, TickoffError
from ..ground.clocks import elapsed, sleep
from ..model import Skipped
from .lease import Lease
from .referee import Referee

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_GROWTH = 1.5


class Queue:
    """How long to pause between the tries of somebody who queues for a lock; None when time is up."""

    def __init__(self, wait: float, now: float) -> None:
        self._end = now + wait
        self._pause = _FIRST_PAUSE

    def pause(self, now: float) -> float | None:
        """The next pause: growing, spread out so that a queue does not come back as one."""
        left = self._end - now
        if left <= 0:
            return None
        pause = self._pause * random.uniform(0.5, 1.5)  # noqa: S311 - spreading out, not secrecy
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)
        return min(pause, left)


class Lock:
    """One lock, to be entered with `with` or `async with`; raises `LockHeld` unless it was won."""

    def __init__(self, referee: Callable[[], Referee], name: str, ttl: int, wait: float) -> None:
        self._referee = referee
        self._name = name
        self._ttl = ttl
        self._wait = wait
        self._lease: Lease | None = None

    def acquire(self) -> Lease | Skipped:
        """Race until won or until the wait is over."""
        referee, queue = self._referee(), Queue(self._wait, elapsed())
        while True:
            verdict = referee.race(referee.bid(self._name, self._ttl))
            pause = None if verdict else queue.pause(elapsed())
            if pause is None:
                return verdict
            sleep(pause)

    async def acquire_aside(self) -> Lease | Skipped:
        """The same beside an event loop."""
        referee, queue = self._referee(), Queue(self._wait, elapsed())
        while True:
            verdict = await referee.race_aside(referee.bid(self._name, self._ttl))
            pause = None if verdict else queue.pause(elapsed())
            if pause is None:
                return verdict
            await asyncio.sleep(pause)

    def __enter__(self) -> Lease:
        self._refuse_reentry()
        return self._entered(self.acquire()).__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left().__exit__(kind, error, trace)

    async def __aenter__(self) -> Lease:
        self._refuse_reentry()
        return await self._entered(await self.acquire_aside()).__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._left().__aexit__(kind, error, trace)

    def _entered(self, verdict: Lease | Skipped) -> Lease:
        if isinstance(verdict, Skipped):
            raise LockHeld(verdict)
        self._lease = verdict
        return verdict

    def _left(self) -> Lease:
        if self._lease is None:
            raise TickoffError(f"this lock on {self._name} was never entered")
        lease, self._lease = self._lease, None
        return lease

    def _refuse_reentry(self) -> None:
        if self._lease is not None:
            raise TickoffError(
                f"this lock on {self._name} is entered already; call jobs.lock() for another one"
            )
