"""The jobs of a fleet, as its servers tell of them: all a person's questions begin here, without any code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..leases.referee import Referee
from ..schedules.schedule import Schedule, read
from ..ticks.presence import Carried, Server, catalogs, servers

_Word = tuple[Server, Carried]


@dataclass(frozen=True, slots=True)
class Listed:
    """A job, the servers that are there and carry it, and those among them that mean it differently."""

    carried: Carried
    servers: tuple[Server, ...] = ()
    differing: tuple[tuple[Server, Carried], ...] = ()

    @property
    def schedule(self) -> Schedule:
        """Its schedule, read from the words of the servers."""
        return read(self.carried.schedule)


@dataclass(frozen=True, slots=True)
class Roster:
    """Who is there, and what jobs there are; those of servers that have gone are known for a month."""

    servers: tuple[Server, ...]
    jobs: dict[str, Listed]

    def schedule(self, name: str) -> Schedule | None:
        """When a job is due, where anybody said so."""
        listed = self.jobs.get(name)
        return listed.schedule if listed else None


def call_roll(referee: Referee, namespace: str, own: Sequence[Carried] = ()) -> Roster:
    """Ask the boards, in two trips; `own` are jobs that this program knows itself."""
    present = servers(referee, namespace)
    return roster_of(present, catalogs(referee, namespace), own)


def roster_of(
    present: Sequence[Server], known: dict[str, list[Carried]], own: Sequence[Carried] = ()
) -> Roster:
    """Put the notes together: what a server says counts more, the later it started."""
    jobs = {carried.name: Listed(carried) for carried in _remembered(known)}
    for name, told in _told(present, known).items():
        jobs[name] = _listed(told)
    for carried in own:
        jobs[carried.name] = replace(jobs.get(carried.name, Listed(carried)), carried=carried)
    return Roster(tuple(present), jobs)


def _remembered(known: dict[str, list[Carried]]) -> list[Carried]:
    """All that was ever told, the newest last."""
    return sorted((carried for told in known.values() for carried in told), key=lambda carried: carried.made)


def _told(present: Sequence[Server], known: dict[str, list[Carried]]) -> dict[str, list[_Word]]:
    """What each server that is there says of each job, the one that started last last."""
    told: dict[str, list[_Word]] = defaultdict(list)
    for server in sorted(present, key=lambda server: server.started):
        for carried in known.get(server.catalog, []):
            told[carried.name].append((server, carried))
    return told


def _listed(told: Sequence[_Word]) -> Listed:
    """The job as the last one means it, and who does not."""
    carried = told[-1][1]
    others = tuple(word for word in told if word[1] is not carried and _differs(word[1], carried))
    return Listed(carried, tuple(server for server, _ in told), others)


def _differs(one: Carried, other: Carried) -> bool:
    """Whether two servers would start other ticks, or other work, by one name."""
    ticks = one.digest != other.digest and one.made == other.made
    return one.schedule != other.schedule or one.function != other.function or ticks
