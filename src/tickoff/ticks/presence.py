"""Who is there, and what they carry: every server posts a note of itself, and one of its jobs.

The note of a server is short and renewed; that of its jobs is named by a digest, so that a fleet that agrees
posts it once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any, TypeVar

from ..errors import ConfigError, StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.referee import Referee
from ..names import full_name, owner
from ..outage import Outage
from .job import Job, Post

_log = logging.getLogger("tickoff")

BEAT = 10.0
"""Seconds between two notes of a server; after three of them without one it is no longer there."""

CATALOG_LIFE = 30 * 24 * 3600 * 1000
"""How long (ms) the jobs of a fleet are known after its last server was seen."""

SKEW = 5.0
"""Seconds by which a clock may be wrong before its server says so."""

_ALONE = "cannot tell the other servers that this one is there: %s"

_CATALOG_EVERY = 24 * 3600.0
_DAY = 24 * 3600 * 1000

N = TypeVar("N", "Carried", "Server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A job as other servers, and people, are told of it; or a post, which has no schedule."""

    name: str
    schedule: str
    digest: str
    function: str
    ttl: int
    timeout: float | None
    attempts: int
    recover: str
    made: int
    leads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is, or was just now, there."""

    owner: str
    version: str
    started: int
    skew: float
    catalog: str
    until: int = 0


def carried(job: Job, now: int) -> Carried:
    """What to tell of a job; the digest of a day's ticks differs where servers read zones differently."""
    made = now - now % _DAY
    return Carried(
        name=job.name,
        schedule=job.schedule.text,
        digest=job.schedule.digest(made),
        function=job.function,
        ttl=job.ttl,
        timeout=job.timeout,
        attempts=job.attempts,
        recover="now" if job.takeover else "next",
        made=made,
    )


def led(post: Post) -> Carried:
    """What to tell of a post."""
    return Carried(
        name=post.name,
        schedule="",
        digest="",
        function=post.function,
        ttl=post.ttl,
        timeout=None,
        attempts=1,
        recover="now",
        made=0,
        leads=True,
    )


class Presence:
    """The notes of this server, and a look at those of the others."""

    def __init__(
        self,
        referee: Referee,
        namespace: str,
        version: str,
        jobs: Sequence[Job],
        posts: Sequence[Post] = (),
    ) -> None:
        self._referee = referee
        self._namespace = namespace
        self._version = version
        self._jobs = jobs
        self._posts = posts
        self._started = 0
        self._catalog = ""
        self._catalog_at = -_CATALOG_EVERY
        self._outage = Outage()
        self._skewed = False
        self._loop = Loop("tickoff-presence", self.step)

    def start(self) -> None:
        """Appear among the servers that are there, unless we contradict one that was there before."""
        try:
            self._post()
            self._report_skew()
            self._compare()
        except StoreUnreachable as error:
            self._outage.met(_ALONE, error)
        except ConfigError:
            self.stop()
            raise
        self._loop.wake_by(elapsed() + BEAT)

    def quiet(self) -> None:
        """Stay visible while work goes on."""

    def busy(self) -> bool:
        """Nothing here is worth waiting for."""
        return False

    def stop(self) -> None:
        """Leave."""
        self._loop.stop()
        try:
            self._referee.store.strike(board(self._namespace, "servers"), owner())
        except StoreUnreachable as error:
            _log.info("could not say good-bye, the note of this server ends by itself: %s", error)

    def step(self, now: float) -> float:
        """Post a beat; when the next one is due."""
        try:
            self._post()
            self._outage.over("this server can tell the others again that it is there")
            self._report_skew()
        except StoreUnreachable as error:
            self._outage.met(_ALONE, error)
        return now + BEAT

    def _post(self) -> None:
        store = self._referee.store
        if not self._referee.time.known:
            self._ask_the_time()
        if elapsed() - self._catalog_at >= _CATALOG_EVERY:
            self._post_catalog()
        note = Server(
            owner=owner(),
            version=self._version,
            started=self._started or int(self._referee.time.now()),
            skew=round(self._referee.time.skew, 3) if self._referee.time.known else 0.0,
            catalog=self._catalog,
        )
        self._started = note.started
        sent = elapsed()
        now = store.post(
            board(self._namespace, "servers"), note.owner, json.dumps(asdict(note)), int(3 * BEAT * 1000)
        )
        self._referee.time.learn(now, sent, elapsed())

    def _ask_the_time(self) -> None:
        """Before the first note, since that tells the skew and when this server started.

        Twice, because the first answer waits for a connection, and may be seconds off.
        """
        for _ in range(2):
            sent = elapsed()
            now = self._referee.store.now()
            self._referee.time.learn(now, sent, elapsed())

    def _post_catalog(self) -> None:
        now = int(self._referee.time.now())
        text = json.dumps([asdict(one) for one in self._carried(now)])
        self._catalog = blake2b(text.encode(), digest_size=8).hexdigest()
        self._referee.store.post(board(self._namespace, "jobs"), self._catalog, text, CATALOG_LIFE)
        self._catalog_at = elapsed()

    def _carried(self, now: int) -> list[Carried]:
        return [*(carried(job, now) for job in self._jobs), *map(led, self._posts)]

    def _compare(self) -> None:
        """Refuse another function by the name of ours; warn of another schedule.

        Everybody appears first and looks then, so of two that start at once the later one sees the other.
        """
        for server, theirs in self._differing():
            before_us = (server.started, server.owner) < (self._started, owner())
            then = max((one.made for one in theirs), default=0)
            mine = {one.name: one for one in self._carried(then)}
            for other in [one for one in theirs if one.name in mine]:
                if before_us:
                    _refuse_other_function(mine[other.name], other, server)
                _warn_of_other_schedule(mine[other.name], other, server)

    def _differing(self) -> Iterator[tuple[Server, list[Carried]]]:
        """The other servers whose jobs are not just ours: of those that agree with each other, the first."""
        seen = {self._catalog}
        for server, theirs in sorted(fleet(self._referee, self._namespace), key=lambda word: word[0].started):
            if server.catalog not in seen:
                yield server, theirs
            seen.add(server.catalog)

    def _report_skew(self) -> None:
        """Once, and again after it was right: ticks follow the store's clock, but logs and others do not."""
        skew = self._referee.time.skew
        if abs(skew) > SKEW and not self._skewed:
            _log.warning(
                "the clock of this machine is %.1f s %s that of %s; ticks go by the latter, but set it right",
                *(abs(skew), "ahead of" if skew > 0 else "behind", self._referee.store.address),
            )
        self._skewed = abs(skew) > SKEW


def board(namespace: str, name: str) -> str:
    """The board of a namespace."""
    return full_name(namespace, name)


def servers(referee: Referee, namespace: str) -> list[Server]:
    """Who is there."""
    notes = referee.store.notes(board(namespace, "servers"))
    return [_told(Server, {**json.loads(note.text), "until": note.until}) for note in notes]


def catalogs(referee: Referee, namespace: str) -> dict[str, list[Carried]]:
    """The jobs that servers carry, or carried lately, by the digest of their catalog."""
    notes = referee.store.notes(board(namespace, "jobs"))
    return {note.key: [_told(Carried, job) for job in json.loads(note.text)] for note in notes}


def fleet(referee: Referee, namespace: str) -> list[tuple[Server, list[Carried]]]:
    """Who is there, each with the jobs it carries."""
    known = catalogs(referee, namespace)
    present = [server for server in servers(referee, namespace) if server.owner != owner()]
    return [(server, known.get(server.catalog, [])) for server in present]


def _told(kind: type[N], values: dict[str, Any]) -> N:
    """What another server told; one of a newer version may tell more than we know of."""
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in known})


def _refuse_other_function(mine: Carried, other: Carried, server: Server) -> None:
    if mine.function != other.function:
        raise ConfigError(
            f"name={mine.name!r} means {mine.function} here, but {other.function} on {server.owner}, which "
            "is running; give one of the two another name, or stop the servers that mean the other"
        )


def _warn_of_other_schedule(mine: Carried, other: Carried, server: Server) -> None:
    if mine.schedule != other.schedule:
        _log.warning(
            "%s is scheduled %r here, but %r on %s: until they agree, both schedules start it",
            *(mine.name, mine.schedule, other.schedule, server.owner),
        )
    elif mine.digest != other.digest:
        _log.warning(
            "%s has the same schedule here and on %s, but other ticks: the servers' time zone data differ",
            *(mine.name, server.owner),
        )
