"""Daemon threads for the user's own functions: one that never returns keeps its thread, not the process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from .world import world

_log = logging.getLogger("tickoff")

Work = Callable[[], None]


class Crew:
    """Threads started one by one as they are needed, and kept; what they do must not raise."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the threads stayed in the parent."""
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._hired = 0

    def start(self, work: Work) -> None:
        """Begin the work in a free thread, or in a new one."""
        if world().start(work):
            return
        self._work.put(work)
        if not self._free.acquire(blocking=False):
            self._hired += 1
            arguments = (self._work, self._free)
            name = f"tickoff-{self._name}-{self._hired}"
            threading.Thread(target=_serve, args=arguments, name=name, daemon=True).start()

    def dismiss(self) -> None:
        """Let the threads end when they are done."""
        work, hired = self._work, self._hired
        self.after_fork()
        for _ in range(hired):
            work.put(None)


def _serve(queue: SimpleQueue[Work | None], free: threading.Semaphore) -> None:
    while (work := queue.get()) is not None:
        try:
            work()
        except Exception:  # noqa: BLE001 - a thread that others will use must outlive a bug, and says so
            _log.exception("%s: unexpected error, going on", threading.current_thread().name)
        del work  # an idle thread keeps nobody's arguments alive
        free.release()
