"""The one asyncio loop of a process: all async functions share it, and so what they keep open."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_LAST_STEPS = 1.0
"""Seconds for cancelled work to clean up behind itself when our loop ends."""


class EventLoop:
    """The user's own loop while it is adopted, else one in a daemon thread that starts when first needed."""

    def __init__(self) -> None:
        self._waiting: list[Coroutine[Any, Any, None]] = []
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the thread stayed in the parent, and so did what waits; closed, it warns of nothing."""
        for work in self._waiting:
            work.close()
        self._guard = threading.Lock()
        self._adopted: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waiting = []

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run everything on this loop, which the user keeps running, until `abandon`."""
        with self._guard:
            self._adopted = loop

    def abandon(self) -> None:
        """Let go of an adopted loop, and end our own."""
        with self._guard:
            self._adopted = None
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=2 * _LAST_STEPS)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work on the loop, from any thread; cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin work that nobody waits for; what begins at the same time wakes the loop once.

        The loop itself would let it be collected half-way: the work keeps its task alive by an `Interrupt`.
        """
        loop = self._running()
        with self._guard:
            self._waiting.append(work)
            first = len(self._waiting) == 1
        if first:
            self._wake(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._begin_all)
        except RuntimeError:  # it is closed
            for work in self._taken():
                work.close()
            raise

    def _begin_all(self) -> None:
        loop = asyncio.get_running_loop()
        for work in self._taken():
            loop.create_task(work)  # noqa: RUF006 - whoever began it keeps it

    def _taken(self) -> list[Coroutine[Any, Any, None]]:
        with self._guard:
            taken, self._waiting = self._waiting, []
        return taken

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._adopted is not None:
                return self._adopted
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                arguments = (self._loop,)
                self._thread = threading.Thread(
                    target=_run, args=arguments, name="tickoff-asyncio", daemon=True
                )
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        with contextlib.suppress(RuntimeError):  # the interpreter is going down
            loop.run_until_complete(_wind_up(loop))
        loop.close()


async def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left, and let it clean up behind itself; what does not, is left to itself."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in left:
        if not task.cancelling():  # one that is on its way out must not be interrupted there
            task.cancel()
    if left:
        await asyncio.wait(left, timeout=_LAST_STEPS)
    await loop.shutdown_asyncgens()


class Interrupt:
    """Cancels one coroutine, from any thread, and so that it always gets to its end.

    A task that is cancelled before its first step never runs, not even what should tell of its end.
    """

    __slots__ = ("_asked", "_guard", "_task")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._task: asyncio.Task[Any] | None = None
        self._asked = False

    def begin(self) -> None:
        """Called by the coroutine inside its `try`; raises where it was cancelled before it began."""
        with self._guard:
            self._task = asyncio.current_task()
            asked = self._asked
        if asked:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Cancel the coroutine, now or as soon as it begins."""
        with self._guard:
            self._asked = True
            task = self._task
        if task is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed, and cancelled all there was
                task.get_loop().call_soon_threadsafe(task.cancel)
