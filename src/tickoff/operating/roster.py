"""The jobs and posts of a fleet, as its servers tell of them: here all questions begin, without any code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..leases.referee import Referee
from ..schedules.schedule import Schedule, read
from ..ticks.presence import Carried, Server, catalogs, servers

_Words = tuple[tuple[Server, ...], Carried]
"""What some servers say of a job, the one that started last last."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A job or a post, the servers that are there and carry it, and those that mean it differently."""

    carried: Carried
    servers: tuple[Server, ...] = ()
    differing: tuple[tuple[Server, Carried], ...] = ()

    @property
    def schedule(self) -> Schedule:
        """Its schedule, read from the words of the servers."""
        return read(self.carried.schedule)


@dataclass(frozen=True, slots=True)
class Roster:
    """Who is there, and what there is to do; what servers carried that have gone is known for a month."""

    servers: tuple[Server, ...]
    jobs: dict[str, Listed]
    posts: dict[str, Listed]

    @property
    def all(self) -> dict[str, Listed]:
        """Jobs and posts."""
        return self.jobs | self.posts

    def schedule(self, name: str) -> Schedule | None:
        """When a job is due, where anybody said so."""
        listed = self.jobs.get(name)
        return listed.schedule if listed else None


def call_roll(referee: Referee, namespace: str, own: Sequence[Carried] = ()) -> Roster:
    """Ask the boards, in two trips; `own` is what this program carries itself."""
    present = servers(referee, namespace)
    return roster_of(present, catalogs(referee, namespace), own)


def roster_of(
    present: Sequence[Server], known: dict[str, list[Carried]], own: Sequence[Carried] = ()
) -> Roster:
    """Put the notes together: what a server says counts more, the later it started."""
    found = {carried.name: Listed(carried) for carried in _remembered(known)}
    for name, told in _told(present, known).items():
        found[name] = _listed(told)
    for carried in own:
        found[carried.name] = replace(found.get(carried.name, Listed(carried)), carried=carried)
    jobs = {name: listed for name, listed in found.items() if not listed.carried.leads}
    return Roster(tuple(present), jobs, {name: found[name] for name in found.keys() - jobs.keys()})


def _remembered(known: dict[str, list[Carried]]) -> list[Carried]:
    """All that was ever told, the newest last."""
    return sorted((carried for told in known.values() for carried in told), key=lambda carried: carried.made)


def _told(present: Sequence[Server], known: dict[str, list[Carried]]) -> dict[str, list[_Words]]:
    """What is said of each job by the servers that are there; who started last has the last word."""
    by_catalog: dict[str, list[Server]] = defaultdict(list)
    for server in sorted(present, key=lambda server: server.started):
        by_catalog[server.catalog].append(server)
    told: dict[str, list[_Words]] = defaultdict(list)
    for catalog, there in sorted(by_catalog.items(), key=lambda item: item[1][-1].started):
        agreed = tuple(there)  # one for all jobs of the catalog: a thousand jobs on a hundred servers
        for carried in known.get(catalog, []):
            told[carried.name].append((agreed, carried))
    return told


def _listed(told: Sequence[_Words]) -> Listed:
    """It as the last one means it, and who does not."""
    carried = told[-1][1]
    differing = [words for words in told if _differs(words[1], carried)]
    others = tuple((one, word) for there, word in differing for one in there)
    if len(told) == 1:
        return Listed(carried, told[0][0], others)
    there = sorted((one for there, _ in told for one in there), key=lambda one: one.started)
    return Listed(carried, tuple(there), others)


def _differs(one: Carried, other: Carried) -> bool:
    """Whether two servers would start other ticks, or other work, by one name."""
    ticks = one.digest != other.digest and one.made == other.made
    return one.schedule != other.schedule or one.function != other.function or ticks
