"""The terminal's foreground: lent to the child's group, so that it can read and Ctrl-C reaches it once."""

from __future__ import annotations

import contextlib
import os
import signal
from types import TracebackType
from typing import Self

STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""What a terminal stops a process with."""


class Terminal:
    """The controlling terminal, if there is one: under cron there is none, and nothing is done."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._ours = os.getpgrp()
        self._terminal = _controlling()
        self._wanted = os.isatty(0) and os.isatty(1)  # else it is part of a pipe, whose pager needs it more

    def __enter__(self) -> Self:
        # Blocked, it lets us take the terminal back from the background, and write on one that minds.
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        self.lend()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.take_back()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
        if self._terminal is not None:
            os.close(self._terminal)

    @property
    def there(self) -> bool:
        """Whether there is a terminal at all."""
        return self._terminal is not None

    def lend(self, *, asked: bool = False) -> bool:
        """Put the child's group into the foreground if ours is, and if it was asked for; whether it was."""
        self._wanted = self._wanted or asked
        return self._wanted and self._hand_over(self._ours, self._group)

    def take_back(self) -> bool:
        """Put our group into the foreground if the child's was; whether it was."""
        return self._hand_over(self._group, self._ours)

    def stop_with_it(self) -> None:
        """Stop as the child was stopped, so that the shell gets its prompt; returns when continued.

        Nothing is renewed meanwhile: whoever is not continued in time has lost the lease.
        """
        self.take_back()
        os.killpg(self._ours, signal.SIGTSTP)

    def interrupt(self, number: int) -> None:
        """Send our own group what the terminal sent to the child's alone."""
        os.killpg(self._ours, number)

    def _hand_over(self, before: int, after: int) -> bool:
        if self._terminal is None:
            return False
        with contextlib.suppress(OSError):  # hung up, or the group is gone
            if os.tcgetpgrp(self._terminal) == before:
                os.tcsetpgrp(self._terminal, after)
                return True
        return False


def _controlling() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return None
