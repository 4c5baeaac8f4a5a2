"""What is amiss with servers: clocks, versions, what they mean by a name, what they left behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator

from ...model import Entry
from ...stores.base import Finding
from ..roster import Listed, Roster
from ..words import counted, length, server
from .lists import listed

SKEW = 1.0
"""Seconds by which a clock may be off: `once` takes the tick of its caller's clock."""


def of_clocks(skew: float, roster: Roster) -> Iterator[Finding]:
    """Clocks that are not the store's: of this machine, and of servers."""
    skews = {"this machine": skew} | {server(one.owner): one.skew for one in roster.servers}
    told = [_skewed(who, seconds) for who, seconds in skews.items() if abs(seconds) > SKEW]
    if told:
        yield Finding(
            check="clock",
            what=f"clocks differ from the store's: {listed(told)}",
            danger="schedules go by the store's time and stay right, but `tickoff once` takes its tick from "
            "its own clock: it waits, or runs another tick; logs cannot be compared",
            remedy="let these machines keep time by NTP (chronyc tracking, timedatectl)",
        )


def of_versions(mine: str, roster: Roster) -> Iterator[Finding]:
    """Servers of several versions."""
    versions = sorted({one.version for one in roster.servers} | ({mine} if roster.servers else set()))
    if len(versions) > 1:
        yield Finding(
            check="version",
            what=f"servers, and this command, run different versions of Tickoff: {', '.join(versions)}",
            danger="a newer one may write what an older one does not know",
            remedy="finish the deployment; nothing needs to be done while one is under way",
        )


def of_jobs(roster: Roster) -> Iterator[Finding]:
    """Jobs and posts that servers mean differently, or that nobody carries any more."""
    differing = [_difference(name, job) for name, job in roster.all.items() if job.differing]
    if differing:
        yield Finding(
            check="schedule",
            what=f"servers mean different things by one name: {listed(differing)}",
            danger="each server starts the ticks of its own schedule, so the job runs by both",
            remedy="restart the servers that run the older code; where the text is the same, update tzdata",
        )
    if not roster.servers and roster.all:
        yield Finding(
            check="servers",
            what=f"no server is there to run {counted(len(roster.all), 'job')}",
            danger="nothing is run",
            remedy="start one: tickoff serve --app MODULE",
        )


def of_leases(roster: Roster, entries: Iterable[Entry], now: int) -> Iterator[Finding]:
    """Leases whose holder is gone."""
    present = {one.owner for one in roster.servers}
    gone = [e for e in entries if e.live(now) and e.owner and e.owner not in present and _gone(e, roster)]
    if gone:
        told = [f"{e.name} by {server(e.owner)} for another {length(e.until - now)}" for e in gone]
        yield Finding(
            check="lease",
            what=f"leases are held by servers that are no longer there: {listed(told)}",
            danger="ticks are skipped until the lease ends by its TTL",
            remedy="wait for the TTL, or, if the holder is surely dead: tickoff release NAME --why TEXT",
        )


def _gone(entry: Entry, roster: Roster) -> bool:
    """Whether a holder that is not among the servers must be dead: it served, or its process is no more."""
    host, _, rest = entry.owner.partition(":")
    if host == socket.gethostname()[:100]:
        return not _alive(rest.partition(":")[0])
    runs_on_servers = entry.tick != 0 or entry.name in roster.posts
    return runs_on_servers and bool(roster.all[entry.name].servers)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _difference(name: str, job: Listed) -> str:
    one, other = job.differing[-1]
    mine, theirs = job.carried, other
    last = server(job.servers[-1].owner)
    if mine.function != theirs.function:
        return f"{name} is {mine.function} on {last}, {theirs.function} on {server(one.owner)}"
    if mine.schedule != theirs.schedule:
        return f"{name} is {mine.schedule!r} on {last}, {theirs.schedule!r} on {server(one.owner)}"
    return f"{name} has other ticks on {last} than on {server(one.owner)}, whose time zone data differ"


def _skewed(who: str, seconds: float) -> str:
    return f"{who} is {length(round(abs(seconds) * 1000))} {'ahead' if seconds > 0 else 'behind'}"
