"""The one asyncio loop of a process: all async functions share it, and so what they keep open."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoop:
    """The user's own loop once it was adopted, else one in a daemon thread that starts when first needed."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the thread stayed in the parent."""
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run everything on this loop, which the user keeps running, until `abandon`."""
        with self._guard:
            self._loop = loop

    def abandon(self) -> None:
        """Let go of an adopted loop, or end our own."""
        with self._guard:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=1.0)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work on the loop, from any thread; cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._guard:
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
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
