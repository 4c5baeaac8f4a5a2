"""Runs asked for by hand: a request is a note, which the first server with a free slot takes."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..model import Note
from ..names import full_name
from .job import Job
from .runs import Runs

_log = logging.getLogger("tickoff")

LOOK = 2.0
"""Seconds between two looks at the board."""

LIFE = 3600 * 1000
"""How long (ms) a request waits for a server that can take it."""


@dataclass(frozen=True, slots=True)
class Request:
    """Who asked for a run of which job, and when, by the store's clock."""

    job: str
    by: str
    at: int


def ask(referee: Referee, namespace: str, job: str, by: str) -> Request:
    """Ask the fleet to run a job once, now; a request that nobody has taken yet is asked for anew."""
    now = referee.store.post(_board(namespace), job, json.dumps({"by": by}), LIFE)
    return Request(job, by, now)


def pending(referee: Referee, namespace: str) -> list[Request]:
    """The requests that nobody has taken yet."""
    return [_request(note) for note in referee.store.notes(_board(namespace))]


class Requests:
    """Looks at the board, and runs what was asked for."""

    def __init__(self, referee: Referee, namespace: str, jobs: Sequence[Job], runs: Runs) -> None:
        self._referee = referee
        self._namespace = namespace
        self._jobs = {job.name: job for job in jobs}
        self._runs = runs
        self._quiet = False
        self._loop = Loop("tickoff-requests", self.step)

    def start(self) -> None:
        """Begin to look."""
        self._loop.wake_by(elapsed() + LOOK)

    def quiet(self) -> None:
        """Take no more."""
        self._quiet = True
        self._loop.stop()

    def busy(self) -> bool:
        """What was taken is the business of the runs."""
        return False

    def stop(self) -> None:
        """Take no more."""
        self.quiet()

    def step(self, now: float) -> float:
        """Take what there are slots for; when to look again."""
        try:
            for request in pending(self._referee, self._namespace):
                job = self._jobs.get(request.job)
                if job is not None and self._runs.free > 0 and not self._quiet:
                    self._take(job, request)
        except StoreUnreachable as error:
            _log.info("cannot look for requests: %s", error)
        return now + LOOK

    def _take(self, job: Job, request: Request) -> None:
        """Win the name first and the request then: so a crash in between leaves the request to others."""
        bid = self._referee.manual_bid(job.name, job.ttl, request.at)
        lease = self._referee.race(bid)
        if not isinstance(lease, Lease):
            return
        if not self._quiet and self._struck(lease, request):
            self._runs.start(job, lease, request.at, manual=True)
        else:
            self._referee.leave(lease)

    def _struck(self, lease: Lease, request: Request) -> bool:
        try:
            return self._referee.store.strike(_board(self._namespace), request.job)
        except StoreUnreachable:
            self._referee.leave(lease)
            raise


def _board(namespace: str) -> str:
    return full_name(namespace, "requests")


def _request(note: Note) -> Request:
    return Request(note.key, json.loads(note.text)["by"], note.until - LIFE)
