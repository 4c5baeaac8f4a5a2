"""The sweep: a job that all servers race for, which puts back what dead workers left in flight.

It needs no winner to be right (every sweep is a compare-and-swap), only to be cheap: so when no sweep
was recorded lately, or the store of leases cannot be asked, a worker sweeps without having won.
"""

from __future__ import annotations

import logging
import math

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..model import Outcome
from ..tables.base import RecordTable, Swept
from .job import RecordJob

_log = logging.getLogger("tickoff")

LONGEST_INTERVAL = 30.0
_DEEP_EVERY = 600.0
"""Seconds between two sweeps of one server that look at every row."""

_LATE = 3
"""A sweep that was not recorded for so many intervals is not waited for."""


def interval_of(job: RecordJob) -> float:
    """Seconds between two sweeps: as long as a claim lasts, at most 30."""
    return max(1.0, min(LONGEST_INTERVAL, job.ttl))


class Sweeper:
    """Races for each sweep of one job's table, and sweeps when it wins."""

    def __init__(self, job: RecordJob, name: str, table: RecordTable, referee: Referee) -> None:
        self._job = job
        self._name = name
        self._table = table
        self._referee = referee
        self._interval = interval_of(job)
        self._loop = Loop(f"tickoff-sweep-{job.name}", self.step)
        self._recorded = elapsed()
        self._deep_at = -math.inf

    def start(self) -> None:
        """Race from now on."""
        self._loop.wake_by(elapsed())

    def stop(self) -> None:
        """Race no longer."""
        self._loop.stop()

    def step(self, now: float) -> float | None:
        """Race for the sweep of this interval; when to race for the next."""
        try:
            left = self._race(now)
        except StoreUnreachable as error:
            _log.info("%s: no race for the sweep, sweeping anyway: %s", self._job.name, error)
            left = self._interval
        if now - self._recorded > self._interval * _LATE:
            self._sweep_alone(now)
        return now + left

    def sweep(self, now: float) -> Swept:
        """Put back what claims that ran out have left."""
        deep = now >= self._deep_at
        swept = self._table.sweep(self._job.attempts, self._job.backoff.first, deep=deep)
        if deep:
            self._deep_at = now + _DEEP_EVERY
        if swept.total:
            _log.warning("%s: swept %d records of dead workers", self._job.name, swept.total)
        return swept

    def _race(self, now: float) -> float:
        """Seconds until the next sweep is due."""
        length = round(self._interval * 1000)
        store_now = self._referee.store.now()
        tick = store_now // length * length
        verdict = self._referee.race(self._referee.tick_bid(self._name, length, tick))
        if isinstance(verdict, Lease):
            self._settle(verdict, now)
        elif verdict.tick is not None:
            self._recorded = now
        return (tick + length - store_now) / 1000

    def _settle(self, lease: Lease, now: float) -> None:
        try:
            self.sweep(now)
        except Exception as error:
            self._referee.settle(lease, Outcome.FAILED, type(error).__name__)
            raise
        self._recorded = now
        self._referee.settle(lease, Outcome.OK)

    def _sweep_alone(self, now: float) -> None:
        try:
            self.sweep(now)
        except StoreUnreachable as error:
            _log.warning("%s: no sweep: %s", self._job.name, error)
        self._recorded = now
