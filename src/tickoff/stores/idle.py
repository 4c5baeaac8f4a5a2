"""Connections kept at hand: a driver's own pool costs a fifth of a lock cycle (bench/locks.py)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

C = TypeVar("C")
T = TypeVar("T")

_KEPT = 16

_inherited: list[Any] = []
"""Connections of a parent process, never touched again: closing one would end the parent's session."""


class Idle(Generic[C]):
    """A stack of open connections; one that saw an error is closed, and the others with it."""

    def __init__(self, opener: Callable[[], C], closer: Callable[[C], None]) -> None:
        self._open = opener
        self._close = closer
        self._idle: deque[C] = deque()

    def exchange(self, talk: Callable[[C], T]) -> T:
        """Talk on one of them, and keep it for the next."""
        connection = self._take()
        try:
            answer = talk(connection)
        except BaseException:  # also an interrupt: the answer may still be on its way
            self._close(connection)
            self.close()
            raise
        if len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            self._close(connection)
        return answer

    def close(self) -> None:
        """Close what is idle: where a server dropped one connection, it has dropped them all."""
        while self._idle:
            self._close(self._idle.pop())

    def abandon(self) -> None:
        """Leave what is idle to the parent process, after a fork."""
        _inherited.extend(self._idle)
        self._idle.clear()

    def _take(self) -> C:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()
