"""A worker: all that one process does for the records of one job, from claim to written answer.

Nothing here waits for anything else: claims, calls, answers, renewals and the words of other servers
each have a thread of their own, so a slow one delays none of the others.
"""

from __future__ import annotations

import logging
import time

from ..ground import forks
from ..ground.clocks import elapsed
from ..ground.eventloop import EventLoop
from ..leases.referee import Referee
from ..tables.base import RecordTable
from .beat import Beat
from .callers import callers_of
from .claimer import Claimer
from .ends import Ends
from .flush import Flusher
from .hand import Hand
from .job import RecordJob
from .names import Names
from .progress import Report
from .provider import Provider
from .renewal import Renewal
from .steering import Steered
from .sweeper import Sweeper
from .tally import Counts, Tally
from .watchdog import Watchdog

_log = logging.getLogger("tickoff")

_LAST_WORDS = 5.0
"""Seconds that the last answers have to be written when the worker stops."""

_LOOK = 0.01


class Worker:
    """A service of `serve`, for one job over records."""

    def __init__(
        self, job: RecordJob, names: Names, table: RecordTable, referee: Referee, loop: EventLoop
    ) -> None:
        self.job = job
        self._names = names
        self._table = table
        self._referee = referee
        self._shared = loop
        self._make()
        forks.tell(self)

    def _make(self) -> None:
        """All parts, new; nothing is in hand."""
        job, table = self.job, self._table
        self._started = False
        self._quiet = False
        self._steered = Steered()
        self._tally = Tally()
        self._hand = hand = Hand(job)
        self._renewal = Renewal(job, table, hand)
        self._claimer = Claimer(job, table, hand, self._renewal)
        self._flusher = Flusher(job, table, hand, self._tally)
        store, board = self._referee.store, self._names.board
        self._provider = Provider(job, self._names.provider, store, hand, board)
        self._beat = Beat(job, board, store, hand, self._tally, self._provider, self._obey)
        ends = Ends(job, self._provider, self._beat.pause, self._beat.hurry)
        self._callers = callers_of(job, hand, self._shared, ends)
        self._watchdog = Watchdog(job, hand, self._callers, ends)
        self._sweeper = Sweeper(job, self._names.sweep, table, self._referee)

    def after_fork(self) -> None:
        """A child holds nothing: what is in hand is the parent's."""
        self._table.forget_connections()
        self._make()

    def start(self) -> None:
        """Check the table and begin to claim, unless the job is paused."""
        try:
            self._table.check()
        except BaseException:
            self._table.close()  # nobody stops what never started
            raise
        if self._started:
            self._make()
        self._started = True
        self._beat.step(elapsed())
        self._beat.start()
        self._sweeper.start()
        self._watchdog.start(elapsed())
        self._callers.start()

    def quiet(self) -> None:
        """Claim nothing more, and give back at once what was not started."""
        self._quiet = True
        self._claimer.forbid()

    def busy(self) -> bool:
        """Whether calls are under way or answers unwritten."""
        return not self._hand.empty

    def stop(self) -> None:
        """Cancel async calls, which give their records back; write the last answers; end the threads.

        A plain function that still runs is left to itself: its claim runs out and is swept.
        """
        self.quiet()
        self._hand.close()
        self._callers.stop()
        self._write_the_rest(elapsed() + _LAST_WORDS)
        parts = (self._claimer, self._watchdog, self._sweeper, self._flusher, self._renewal, self._provider)
        for part in parts:
            part.stop()
        if self._started:
            self._beat.stop()
        self._table.close()

    @property
    def idle(self) -> bool:
        """Whether nothing was there to be claimed, and nothing is in hand."""
        return self._claimer.idle and self._hand.empty

    @property
    def paused(self) -> Steered | None:
        """Who paused the job and why; None while it is not."""
        return self._steered if self._steered.paused else None

    @property
    def counts(self) -> Counts:
        """What this process did so far."""
        return self._tally.counts

    @property
    def report(self) -> Report:
        """The same, and how it stands: what it says to the others."""
        return self._beat.report(elapsed())

    def _obey(self, steered: Steered) -> None:
        """Claim or stop claiming, as was said last."""
        before, self._steered = self._steered, steered
        if steered.paused:
            self._claimer.forbid()
        elif not self._quiet:
            self._claimer.allow()
        if steered.paused and not before.paused:
            _log.warning("%s: paused by %s: %s", self.job.name, steered.by, steered.why)
        elif before.paused and not steered.paused:
            _log.warning("%s: resumed", self.job.name)

    def _write_the_rest(self, deadline: float) -> None:
        """Wait for the flusher, and for calls that were cancelled; a thread's call cannot be waited for."""
        while elapsed() < deadline and (self._hand.unwritten or self._hand.returning or self._cancelling()):
            time.sleep(_LOOK)

    def _cancelling(self) -> bool:
        return self.job.is_async and not self._hand.empty
