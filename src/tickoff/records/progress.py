"""How far the fleet is: every server posts what it did, and whoever looks adds it up.

Nobody writes a counter that others write, and no table is counted per look: a full count is taken now and
then, and what the servers post moves it on in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from ..model import Note
from ..tables.base import State
from ..tables.seen import Holding
from .tally import Counts

LIFE = 10_000
"""A server's note is gone so many ms after its last word."""

LAST_LIFE = 3_000
"""The same when it said that it was the last: long enough to be read by whoever looks on."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one server says of its work."""

    server: str
    counts: Counts = field(default_factory=Counts)
    in_flight: int = 0
    rate: float = 0.0
    """Records decided per second, lately."""
    repeat: int = 0
    """At most so many calls would be made again if it died now."""
    held: str = ""
    """Why its calls wait: what the provider asked for, or that it is down."""

    @property
    def alive(self) -> bool:
        """Whether it works; one that said goodbye would repeat nothing."""
        return self.repeat > 0

    def text(self) -> str:
        """As it is posted."""
        said = asdict(self)
        del said["server"]
        return json.dumps(said, separators=(",", ":"))


def read_report(note: Note) -> Report:
    """A server's note, read."""
    said = json.loads(note.text)
    known = {name: said[name] for name in ("in_flight", "rate", "repeat", "held") if name in said}
    counts = {name: said["counts"][name] for name in asdict(Counts()) if name in said["counts"]}
    return Report(note.key, Counts(**counts), **known)


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a job's records, over all servers."""

    pending: int
    in_flight: int
    done: int
    failed: int
    servers: tuple[Report, ...] = ()
    silent: tuple[Holding, ...] = ()
    """Servers that say nothing any more, or not yet, and what they have claimed."""
    paused: bool = False
    paused_by: str = ""
    paused_why: str = ""

    @property
    def total(self) -> int:
        """All records."""
        return self.pending + self.in_flight + self.done + self.failed

    @property
    def rate(self) -> float:
        """Records decided per second by the whole fleet, lately."""
        return sum(report.rate for report in self.servers)

    @property
    def eta(self) -> float | None:
        """Seconds until all are decided at this rate; None while nothing moves."""
        left = self.pending + self.in_flight
        if left == 0:
            return 0.0
        return left / self.rate if self.rate > 0 else None

    @property
    def possibly_repeated(self) -> int:
        """At most so many calls would be made again if every server died now."""
        return sum(report.repeat for report in self.servers)

    @property
    def held(self) -> str:
        """Why calls wait, in the words of a server whose calls do; empty when none do."""
        return next((report.held for report in self.servers if report.held), "")

    @property
    def counts(self) -> Counts:
        """What the servers that are alive did since they began."""
        summed = Counts()
        for report in self.servers:
            summed = summed.plus(report.counts)
        return summed


class Estimate:
    """The states of a table: counted once in a while, moved on by what the servers post in between.

    A server that dies takes what it did in its last second with it: then a count is due.
    """

    def __init__(self) -> None:
        self._counted: Mapping[State, int] = {}
        self._then: dict[str, Counts] = {}
        self._latest: dict[str, Counts] = {}

    def count(self, counted: Mapping[State, int], reports: Iterable[Report]) -> None:
        """Take in a full count, and what the servers had posted when it was taken."""
        self._counted = counted
        self._then = {report.server: report.counts for report in reports}
        self._latest = dict(self._then)

    def misses(self, reports: Iterable[Report]) -> bool:
        """Whether a server that had posted something since the count is gone."""
        return bool(self._latest.keys() - {report.server for report in reports})

    def progress(self, reports: Iterable[Report], holdings: Iterable[Holding] = ()) -> Progress:
        """The states as they should be now."""
        servers = tuple(reports)
        heard = {report.server for report in servers}
        silent = tuple(holding for holding in holdings if holding.owner not in heard)
        self._latest.update((report.server, report.counts) for report in servers)
        done, failed = self._since("done"), self._since("failed")
        in_flight = sum(report.in_flight for report in servers) + sum(one.records for one in silent)
        open_before = self._counted.get(State.PENDING, 0) + self._counted.get(State.IN_FLIGHT, 0)
        left = max(open_before - done - failed, 0)
        in_flight = min(in_flight, left)
        return Progress(
            pending=left - in_flight,
            in_flight=in_flight,
            done=self._counted.get(State.DONE, 0) + done,
            failed=self._counted.get(State.FAILED, 0) + failed,
            servers=servers,
            silent=silent,
        )

    def _since(self, field: str) -> int:
        """How many were decided since the count, by servers that are gone as well."""
        return sum(
            getattr(latest, field) - getattr(self._then.get(server, _NOTHING), field)
            for server, latest in self._latest.items()
        )


_NOTHING = Counts()


def with_steering(progress: Progress, *, paused: bool, by: str, why: str) -> Progress:
    """The same, with who paused it and why."""
    return replace(progress, paused=paused, paused_by=by, paused_why=why)


class Rate:
    """Records per second over the last seconds."""

    def __init__(self, window: float = 10.0) -> None:
        self._window = window
        self._samples: list[tuple[float, int]] = []

    def learn(self, decided: int, now: float) -> float:
        """Take in how many were decided so far; the rate."""
        self._samples.append((now, decided))
        while len(self._samples) > 2 and self._samples[1][0] <= now - self._window:
            del self._samples[0]
        (then, before) = self._samples[0]
        return (decided - before) / (now - then) if now > then else 0.0
