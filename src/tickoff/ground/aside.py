"""One colour inside: async callers hand the same blocking call to a thread of ours.

A queue and a few daemon threads; a ThreadPoolExecutor costs a fifth more per call (bench/locks.py), and
the event loop's own may be full of the user's blocking work.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_THREADS = 16


class _Call(Generic[T]):
    """A call to be made, and the future that waits for it."""

    __slots__ = ("arguments", "error", "future", "value", "work")

    def __init__(self, work: Callable[..., T], arguments: tuple[Any, ...], future: asyncio.Future[T]) -> None:
        self.work = work
        self.arguments = arguments
        self.future = future
        self.value: T | None = None
        self.error: BaseException | None = None

    def make(self) -> None:
        """Make the call, unless it was given up before it began; in a thread of ours."""
        if self.future.cancelled():
            return
        try:
            self.value = self.work(*self.arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
            self.error = error

    def hand_over(self) -> None:
        """Let the event loop have the result, if it still runs."""
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile: nobody waits
            self.future.get_loop().call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(cast("T", self.value))
        else:
            self.future.set_exception(self.error)


class Aside:
    """Threads for I/O, started one by one as they are needed."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the threads stayed in the parent."""
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._threads = 0

    def start(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Begin the call in a thread; once begun, cancelling whoever awaits it does not stop it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put(_Call(work, arguments, future))
        if not self._free.acquire(blocking=False) and self._threads < _THREADS:
            self._threads += 1
            arguments_of_thread = (self._calls, self._free)
            threading.Thread(target=_serve, args=arguments_of_thread, name="tickoff-io", daemon=True).start()
        return future

    def close(self) -> None:
        """Let the threads end when they are done."""
        calls, threads = self._calls, self._threads
        self.after_fork()
        for _ in range(threads):
            calls.put(None)


def _serve(calls: SimpleQueue[_Call[Any] | None], free: threading.Semaphore) -> None:
    while (call := calls.get()) is not None:
        call.make()
        free.release()  # first, or the event loop would start another thread for its next call
        call.hand_over()
        del call  # an idle thread keeps nobody's arguments alive
