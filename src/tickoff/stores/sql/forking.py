"""A fork waits until no thread of ours is amid SQL, for a child inherits every lock as it is at that moment.

SQLite's library has locks for all connections of a process, and so has SQLAlchemy. One that a thread of the
parent has taken is never let go of in the child, which would hang on connections of its own.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

_PATIENCE = 2.0
"""Seconds a fork waits at most: a database may not answer, or wait for what the forking thread holds."""


class Amid:
    """Entered around every use of SQL; while a fork is under way, nobody gets in."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._mine = threading.local()
        self._count = 0
        self._forking = False

    def __enter__(self) -> None:
        if self._depth == 0:
            with self._changed:
                self._changed.wait_for(lambda: not self._forking)
                self._count += 1
        self._mine.depth = self._depth + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mine.depth = self._depth - 1
        if self._depth == 0:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Shut the door, and wait until all others are out."""
        self._changed.acquire()
        self._forking = True
        mine = min(self._depth, 1)
        self._changed.wait_for(lambda: self._count == mine, _PATIENCE)

    def after_in_parent(self) -> None:
        """Open the door again."""
        self._forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Start anew: whoever else was inside stayed in the parent."""
        self._changed = threading.Condition()
        self._count = min(self._depth, 1)
        self._forking = False

    @property
    def _depth(self) -> int:
        """How often this thread has entered, and not left."""
        depth: int = getattr(self._mine, "depth", 0)
        return depth


amid_sql = Amid()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=amid_sql.before_fork,
        after_in_parent=amid_sql.after_in_parent,
        after_in_child=amid_sql.after_in_child,
    )
