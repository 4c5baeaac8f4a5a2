"""All that a wrapper waits for in one place: signals, a lost lease and the child's end, through one pipe."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType, TracebackType
from typing import Self

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
"""Signals that are the child's business as much as ours."""


class Wakes:
    """Signals become bytes in a pipe, so that none is missed and none interrupts anything."""

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        heeded = [one for one in FORWARDED if signal.getsignal(one) is not signal.SIG_IGN]  # as under nohup
        self._handlers = {one: signal.signal(one, _noted) for one in (*heeded, signal.SIGCHLD)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one, handler in self._handlers.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(self._before)
        writer, self._writer = self._writer, -1
        os.close(writer)
        os.close(self._reader)

    def wake(self) -> None:
        """End the wait; from any thread."""
        with contextlib.suppress(OSError):  # full: it will wake up; closed: nobody waits
            os.write(self._writer, b"\0")

    def wait(self, seconds: float) -> list[int]:
        """Wait until something happened, or for so long; the signals that came for the child."""
        select.select([self._reader], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            return [number for number in os.read(self._reader, 4096) if number in FORWARDED]
        return []


def _noted(_number: int, _frame: FrameType | None) -> None:
    """The pipe has it."""
