"""What people, ticks and the command line do to the records of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from ..errors import ConfigError
from ..ground import forks
from ..ground.clocks import elapsed
from ..ground.eventloop import EventLoop
from ..leases.referee import Referee
from ..names import has_control_characters
from ..tables.base import RecordTable, Swept
from ..ticks.tick import Tick
from .canary import Canary
from .job import RecordJob
from .names import Names
from .onepass import Pass, Passed
from .progress import Estimate, Progress, Report, read_report, with_steering
from .reading import condition_of
from .steering import Steered, Steering
from .worker import Worker

_RECOUNT = 30.0
"""Seconds between two full counts…"""

_REST = 100
"""…and at least so many times what the last one took, also when a server is gone and a count is due."""

_MANY = 1_000_000

GRACE = 30.0
"""Seconds that running calls have to end when a pass is interrupted."""


def _nobody() -> None:
    """Nobody looks on."""


class Records:
    """The records of one job: steer them, look at them, or work them in this process.

    `table.install()` adds the tracking columns, `table.show(key)` says how one record stands.
    """

    def __init__(
        self, job: RecordJob, names: Names, table: RecordTable, referee: Referee, loop: EventLoop
    ) -> None:
        self.job = job
        self.table = table
        self._names = names
        self._referee = referee
        self._loop = loop
        self._steering = Steering(names.board, referee.store)
        self._estimate = Estimate()
        self._count_at = self._count_again_at = 0.0
        forks.tell(self)

    def reopen(self, where: str | Any = None, *, tick: Tick | None = None, changed: bool = False) -> int:
        """Make DONE rows PENDING again, so that all servers work them anew; how many.

        With a tick, only rows finished before it: a tick that is retried pays nothing twice. With `changed`,
        only rows that are others since they were claimed, as far as your function sees; a companion tells.
        """
        before: datetime | None = None if tick is None else tick.at
        return self.table.reopen(condition_of(where), finished_before=before, changed=changed)

    def retry(self, error: str | None = None) -> int:
        """Make FAILED rows PENDING again with all their attempts (if the error is LIKE this); how many."""
        if error is not None and (not isinstance(error, str) or has_control_characters(error)):
            raise ConfigError(f"error={error!r:.60} is no pattern; write such as '%timed out%'")
        return self.table.retry(error)

    def pause(self, why: str) -> Steered:
        """Stop the work on all servers within a second: claims are given back, running calls may end."""
        return self._steering.pause(why)

    def resume(self) -> Steered:
        """Go on, on all servers."""
        return self._steering.resume()

    def sweep(self) -> Swept:
        """Put back now what dead workers left in flight, rows included whose claim nobody knows."""
        return self.table.sweep(self.job.attempts, self.job.backoff.first, deep=True)

    def progress(self) -> Progress:
        """How far the fleet is; the table is counted in full only now and then."""
        now, reports = elapsed(), self.servers()
        if now >= self._count_at or (now >= self._count_again_at and self._estimate.misses(reports)):
            self._count(reports, now)
        steered = self._steering.read()
        found = self._estimate.progress(reports, self.table.holdings())
        return with_steering(found, paused=steered.paused, by=steered.by, why=steered.why)

    def _count(self, reports: list[Report], now: float) -> None:
        self._estimate.count(self.table.counts(), reports)
        self._count_again_at = elapsed() + (elapsed() - now) * _REST
        self._count_at = max(elapsed() + _RECOUNT, self._count_again_at)

    def servers(self) -> list[Report]:
        """What the servers that are alive say of their work."""
        return [read_report(note) for note in self._referee.store.notes(self._names.board)]

    def run(
        self,
        look: Callable[[], None] = _nobody,
        *,
        grace: float = GRACE,
        stop: threading.Event | None = None,
    ) -> Passed:
        """Work in this process until no record is PENDING or IN_FLIGHT anywhere, or until paused.

        `look` is called now and then meanwhile; setting `stop` ends it early.
        """
        return Pass(self.worker(), self.table, grace).run(look, stop or threading.Event())

    def worker(self) -> Worker:
        """A worker for this process, to be started and stopped by whoever asked for it."""
        return Worker(self.job, self._names, self.table, self._referee, self._loop)

    def canary(self) -> Canary:
        """Calls some random records, and writes the answers only when told to."""
        job = replace(self.job, circuit=False, attempts=_MANY)  # it shows all errors, and gives up no row
        return Canary(
            job, self.table, lambda table: Worker(job, self._names, table, self._referee, self._loop)
        )

    def close(self) -> None:
        """Close the connections to the table; used again, it opens new ones."""
        self.table.close()

    def after_fork(self) -> None:
        """Leave the parent's connections to the parent."""
        self.table.forget_connections()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
