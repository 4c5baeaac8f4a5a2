"""A thread that only calls `step(now) → when to wake`: all policy stays outside, time can be virtual."""

from __future__ import annotations

import logging
import math
import threading

from .clocks import elapsed
from .world import Driver, Step, world

_log = logging.getLogger("tickoff")

_LONGEST_SLEEP = 1.0
"""Sleeps are cut here, because a sleeping thread does not notice that the machine was suspended."""

AFTER_ERROR = 1.0
"""Seconds after which a loop goes on that met an error nobody expected."""


class Loop:
    """Calls a step whenever it is due, in a daemon thread that starts when first needed."""

    def __init__(self, name: str, step: Step) -> None:
        self._driver: Driver = world().driver(name, step) or _Thread(name, step)

    def after_fork(self) -> None:
        """Start anew in a child."""
        self._driver.after_fork()

    def wake_by(self, due: float) -> None:
        """See to it that the next step comes at `due` or earlier; cheap when it does already."""
        self._driver.wake_by(due)

    def stop(self) -> None:
        """End the thread after its current step; it starts again when needed."""
        self._driver.stop()


class _Thread:
    """The thread of a loop."""

    def __init__(self, name: str, step: Step) -> None:
        self._name = name
        self._step = step
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew: the thread stayed in the parent, and so may have the lock's holder."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wake = math.inf

    def wake_by(self, due: float) -> None:
        """See to it that the next step comes at `due` or earlier; cheap when it does already."""
        if due >= self._wake and self._thread is not None:
            return
        with self._changed:
            self._wake = min(self._wake, due)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End the thread after its current step; it starts again when needed."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._wake = math.inf
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1.0)

    def _run(self) -> None:
        while self._sleep():
            due = self._guarded_step()
            with self._changed:
                if due is not None:
                    self._wake = min(self._wake, due)

    def _sleep(self) -> bool:
        """Wait until a step is due; False when this thread was stopped, whoever runs the loop by now."""
        with self._changed:
            while self._thread is threading.current_thread():
                left = self._wake - elapsed()
                if left <= 0:
                    self._wake = math.inf
                    return True
                self._changed.wait(None if math.isinf(left) else min(left, _LONGEST_SLEEP))
            return False

    def _guarded_step(self) -> float | None:
        try:
            return self._step(elapsed())
        except Exception:  # noqa: BLE001 - a thread that keeps leases must outlive a bug, and says so
            _log.exception("%s: unexpected error, going on", self._name)
            return elapsed() + AFTER_ERROR
