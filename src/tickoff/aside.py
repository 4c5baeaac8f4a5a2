"""One colour inside: async callers hand the same blocking call to a thread of ours."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 16


class Aside:
    """A pool of threads for I/O; not the event loop's own, which the user's blocking work may fill."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the threads stayed in the parent."""
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin the call in a thread; cancelling whoever awaits it does not stop it."""
        with self._guard:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="tickoff-io")
            begun = self._pool.submit(call, *args, **kwargs)
        return asyncio.wrap_future(begun)

    def close(self) -> None:
        """Let the threads end when they are done."""
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)
