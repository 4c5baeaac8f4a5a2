"""Calls that take too long: one look at all of them now and then, instead of a timer for each."""

from __future__ import annotations

import logging
from typing import Protocol

from ..ground.loops import Loop
from .claim import Call
from .ends import Ends
from .hand import Hand
from .job import RecordJob

_log = logging.getLogger("tickoff")

_LOOKS = 20
"""So many looks per time-out…"""

_OFTEN, _SELDOM = 0.02, 1.0
"""…but not more often, and not more seldom than this."""

_IGNORED = 2.0
"""Seconds after which a call that did not end when cancelled is given up."""


class Interruptible(Protocol):
    """Whoever makes the calls."""

    def interrupt(self, call: Call, /) -> bool:
        """End this call if that is possible; False if it is not."""
        ...


class Watchdog:
    """Ends calls that outlast the time-out; those it cannot end are charged and left to themselves."""

    def __init__(self, job: RecordJob, hand: Hand, callers: Interruptible, ends: Ends) -> None:
        self._job = job
        self._hand = hand
        self._callers = callers
        self._ends = ends
        self._pause = min(_SELDOM, max(_OFTEN, job.timeout / _LOOKS))
        self._loop = Loop(f"tickoff-watch-{job.name}", self.step)

    def start(self, now: float) -> None:
        """Watch from now on."""
        self._loop.wake_by(now + self._pause)

    def step(self, now: float) -> float | None:
        """End or give up what is overdue; when to look again."""
        for call in self._hand.calls():
            if now - call.started >= self._job.timeout:
                self._end(call, now)
        return now + self._pause

    def stop(self) -> None:
        """Watch no longer."""
        self._loop.stop()

    def _end(self, call: Call, now: float) -> None:
        if not call.overdue:
            call.overdue = True
            if self._callers.interrupt(call):
                return
        elif now - call.started < self._job.timeout + _IGNORED:
            return
        if self._ends.overdue(call, goes_on=True):
            _log.warning(
                "%s: a call goes on after its timeout of %gs and keeps its place until it ends",
                self._job.name,
                self._job.timeout,
                extra={"job": self._job.name},
            )
