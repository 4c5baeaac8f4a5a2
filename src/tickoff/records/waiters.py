"""Threads that wait for a call to make."""

from __future__ import annotations

import threading

_LONGEST_WAIT = 1.0
"""They look up so often, should the machine have been suspended."""


class Waiters:
    """Whoever is here holds the guard."""

    def __init__(self, guard: threading.Lock) -> None:
        self._changed = threading.Condition(guard)
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def wait(self) -> None:
        """Let the others have the guard until something has changed."""
        self._count += 1
        self._changed.wait(_LONGEST_WAIT)
        self._count -= 1

    def wake(self, some: int) -> None:
        """Wake so many of them."""
        if self._count:
            self._changed.notify(some)

    def wake_all(self) -> None:
        """Wake all of them."""
        if self._count:
            self._changed.notify_all()
