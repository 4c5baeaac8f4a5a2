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


@dataclass(frozen=True, slots=True)
class _Taken:
    """A request whose name is ours, so that nobody else takes it."""

    job: Job
    request: Request
    lease: Lease


class Requests:
    """Looks at the board, and runs what was asked for."""

    def __init__(self, referee: Referee, namespace: str, jobs: Sequence[Job], runs: Runs) -> None:
        self._referee = referee
        self._namespace = namespace
        self._jobs = {job.name: job for job in jobs}
        self._runs = runs
        self._quiet = False
        self._unsure: list[_Taken] = []
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
        """Take no more, and give back what was not begun."""
        self.quiet()
        while self._unsure:
            self._give_back(self._unsure.pop())

    def step(self, now: float) -> float:
        """Take what there are slots for; when to look again."""
        try:
            self._strike_again()
            for request in pending(self._referee, self._namespace):
                job = self._jobs.get(request.job)
                if job is not None and self._runs.free > 0 and not self._quiet:
                    self._take(job, request)
        except StoreUnreachable as error:
            _log.info("cannot look for requests: %s", error)
        return now + LOOK

    def _take(self, job: Job, request: Request) -> None:
        """Win the name first and the request then: so a crash in between leaves the request to others."""
        lease = self._referee.race(self._referee.manual_bid(job.name, job.ttl, request.at))
        if not isinstance(lease, Lease):
            return
        if self._still_there(lease, request) and not self._quiet:
            self._strike(_Taken(job, request, lease))
        else:
            self._referee.leave(lease)

    def _still_there(self, lease: Lease, request: Request) -> bool:
        """Whether nobody took it before its name was ours; from now on, nobody else can."""
        try:
            return request in pending(self._referee, self._namespace)
        except StoreUnreachable:
            self._referee.leave(lease)
            raise

    def _strike(self, taken: _Taken) -> None:
        """Take the request down, and begin; without an answer, keep the name until there is one."""
        try:
            self._referee.store.strike(_board(self._namespace), taken.request.job)
        except StoreUnreachable:
            self._unsure.append(taken)
            raise
        if taken.lease.lost:
            self._report_loss(taken)
        else:
            self._runs.start(taken.job, taken.lease, taken.request.at, manual=True)

    def _strike_again(self) -> None:
        """Whether or not an earlier strike arrived: the request is down, and nobody else took it."""
        while self._unsure and not self._quiet:
            taken = self._unsure.pop()
            if taken.lease.lost:
                self._report_loss(taken)
            else:
                self._strike(taken)

    def _give_back(self, taken: _Taken) -> None:
        """Put the request up again, whether or not it was taken down."""
        try:
            ask(self._referee, self._namespace, taken.request.job, taken.request.by)
        except StoreUnreachable:
            self._report_loss(taken)
        self._referee.leave(taken.lease)

    def _report_loss(self, taken: _Taken) -> None:
        """Another server may have taken it by now, so it is not put up again: it could run twice."""
        _log.warning(
            "the run of %s that %s asked for may be lost with the store's answer: look at its history, "
            "and ask again",
            *(taken.request.job, taken.request.by),
        )


def _board(namespace: str) -> str:
    return full_name(namespace, "requests")


def _request(note: Note) -> Request:
    return Request(note.key, json.loads(note.text)["by"], note.until - LIFE)
