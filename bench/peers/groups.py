"""What is measured together, in turns; each group takes a few minutes at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.peers import roll
from bench.peers.roll import Peer


@dataclass(frozen=True)
class Entry:
    """A contender under some circumstances."""

    peer: Peer
    under: str = ""
    """The circumstances, in words."""
    processes: int = 1
    held: bool = False
    """Whether another transaction holds a snapshot open all the time."""
    upto: int | None = None
    """Only so many are worked."""

    @property
    def label(self) -> str:
        """The contender's, and the circumstances."""
        return f"{self.peer.label}, {self.under}" if self.under else self.peer.label


@dataclass(frozen=True)
class Aim:
    """So many times the rate of another, in the same run."""

    of: str
    to: str
    at_least: float


@dataclass(frozen=True)
class Group:
    """Contenders, and what each is compared with."""

    title: str
    entries: Sequence[Entry]
    beside: Sequence[str]
    """Labels; for one that has circumstances, of its own circumstances."""
    aims: Sequence[Aim] = field(default=())


PROCESSES = (2, 8)
ROWS = (10_000, 500_000)
WORKED = 50_000
"""Of a large table only so many are worked: what matters is whether its size is felt."""

_IN_ONE = (
    *(roll.PGQUEUER, roll.PROCRASTINATE, roll.naive("postgres")),
    *(roll.batched("postgres"), roll.at_once("postgres")),
    *(roll.TICKOFF, roll.TICKOFF_ASYNC, roll.TICKOFF_100, roll.TICKOFF_500),
)
_ON_REDIS = (
    *(roll.PGQUEUER, roll.DRAMATIQ, roll.HUEY_REDIS, roll.CELERY),
    *(roll.TICKOFF, roll.TICKOFF_100, roll.TICKOFF_500),
)
_IN_MANY = (
    *(roll.PGQUEUER, roll.DRAMATIQ, roll.HUEY_REDIS, roll.naive("postgres", 4000)),
    *(roll.batched("postgres", 150_000), roll.TICKOFF, roll.TICKOFF_500),
)
_ON_POSTGRES = (roll.PGQUEUER, roll.batched("postgres"), roll.TICKOFF, roll.TICKOFF_500)
_IN_LARGE = (roll.PGQUEUER, roll.TICKOFF, roll.TICKOFF_500)
_LITE = (roll.HUEY_SQLITE, roll.batched("sqlite"), roll.at_once("sqlite"), roll.LITE, roll.LITE_100)
_MARIA = (
    *(roll.naive("mariadb"), roll.batched("mariadb", 50_000), roll.at_once("mariadb")),
    *(roll.MARIA, roll.MARIA_100),
)


def _many(processes: int) -> list[Entry]:
    return [Entry(peer, f"{processes} processes", processes) for peer in _IN_MANY]


def _held() -> list[Entry]:
    circumstances = ((False, "alone"), (True, "a snapshot held open"))
    return [Entry(peer, words, held=held) for held, words in circumstances for peer in _ON_POSTGRES]


def _large() -> list[Entry]:
    return [
        Entry(replace(peer, count=rows), f"{rows:,} listed", upto=WORKED)
        for rows in ROWS
        for peer in _IN_LARGE
    ]


_PGQUEUER = roll.PGQUEUER.label
_AIMS = (
    Aim(roll.TICKOFF.label, _PGQUEUER, 3.0),
    Aim(roll.TICKOFF_100.label, _PGQUEUER, 4.0),
    Aim(roll.TICKOFF_500.label, _PGQUEUER, 4.0),
)
GROUPS = {
    "postgres": Group(
        "PostgreSQL",
        [Entry(peer) for peer in _IN_ONE],
        (_PGQUEUER,),
        _AIMS,
    ),
    "redis": Group(
        "the fast queues", [Entry(peer) for peer in _ON_REDIS], (_PGQUEUER, roll.DRAMATIQ.label), _AIMS
    ),
    "2-processes": Group("2 processes", _many(PROCESSES[0]), (_PGQUEUER,)),
    "8-processes": Group("8 processes", _many(PROCESSES[1]), (_PGQUEUER,)),
    "snapshot": Group("a snapshot held open", _held(), (_PGQUEUER,)),
    "sizes": Group("large tables", _large(), (_PGQUEUER,)),
    "sqlite": Group(
        "SQLite",
        [Entry(peer) for peer in _LITE],
        (roll.HUEY_SQLITE.label,),
        (Aim(roll.LITE_100.label, roll.HUEY_SQLITE.label, 10.0),),
    ),
    "mariadb": Group("MariaDB", [Entry(peer) for peer in _MARIA], (roll.naive("mariadb").label,)),
}
