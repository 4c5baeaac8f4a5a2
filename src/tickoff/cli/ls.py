"""`tickoff ls` shows what there is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from .opening import as_text, fleet, fleet_options, json_option

if TYPE_CHECKING:
    from ..operating.status import (
        Holding,
        JobStatus,
        LeaderStatus,
        LockStatus,
        Paused,
        RecordStatus,
        Status,
    )


@click.command(short_help="List jobs, how they stand, leaders, records, and locks that are held.")
@fleet_options
@json_option
def ls(url: str | None, namespace: str | None, app: str | None, as_json: bool) -> None:
    """List jobs: schedule, last run, next tick, who is at work; leaders; records; locks that are held."""
    with fleet(url, namespace, app) as jobs:
        status = jobs.status()
    click.echo(as_text(status) if as_json else "\n".join(_page(status)))


def _page(status: Status) -> list[str]:
    from ..operating.words import clock, counted
    from .paint import shortened, width

    at = clock(status.at.astimezone().replace(microsecond=0))
    there = f"{counted(len(status.servers), 'server')}, {counted(len(status.jobs), 'job')}"
    lines = [shortened(f"{there}; {at}", width())]
    if status.jobs:
        lines += ["", *_jobs(status)]
    if status.leaders:
        lines += ["", *_named("LEADER", [(one.name, _lead(one, status.at)) for one in status.leaders])]
    if status.records:
        lines += ["", *_named("RECORDS", [(one.name, _worked(one, status.at)) for one in status.records])]
    if status.locks:
        lines += ["", *_named("LOCK", [(lock.name, [_held(lock, status.at)]) for lock in status.locks])]
    return lines


def _jobs(status: Status) -> list[str]:
    from .paint import details, table

    rows = [_row(job, status.at) for job in status.jobs]
    head, *lines = table(("JOB", "SCHEDULE", "LAST RUN", "NEXT TICK"), rows)
    return [head] + [
        line
        for job, row in zip(status.jobs, lines, strict=True)
        for line in (row, *(details(told) for told in _details(job, status.at)))
    ]


def _row(job: JobStatus, at: datetime) -> tuple[str, str, str, str]:
    following = _paused() if job.paused else _ahead(job.next, at)
    return job.name, job.schedule or "-", _last(job, at), following


def _last(job: JobStatus, at: datetime) -> str:
    """How the last one ended that is over; while one runs, all that is known is the last success."""
    from .paint import painted

    if job.last is not None:
        return f"{painted(job.last.outcome)} {_ago(at - job.last.at)}"
    return f"ok {_ago(at - job.success)}" if job.success else "-"


def _details(job: JobStatus, at: datetime) -> list[str]:
    """What does not fit into a row, and is not always so."""
    told = []
    if job.running:
        told.append(f"running on {_holding(job.running, at)}")
    if job.retrying:
        told.append("failed, and will be started again")
    if job.paused:
        told.append(_pause(job.paused))
    if job.differing:
        told.append(_differ())
    if not job.servers and job.schedule:
        told.append(_nobody())
    return told


def _pause(paused: Paused) -> str:
    from ..operating.words import time_of_day

    since = time_of_day(paused.since.astimezone().replace(microsecond=0))
    return f"paused since {since} by {paused.by}: {paused.why}"


def _differ() -> str:
    from .paint import paint

    return paint("servers differ in what it is: tickoff doctor tells how", "red")


def _nobody() -> str:
    from .paint import paint

    return paint("no server that carries it is there", "red")


def _named(head: str, told: list[tuple[str, list[str]]]) -> list[str]:
    """Names under one another, and under each what there is to tell."""
    from .paint import details, table

    first, *names = table((head,), [(name,) for name, _ in told])
    return [first] + [
        line for name, (_, lines) in zip(names, told, strict=True) for line in (name, *map(details, lines))
    ]


def _lead(leader: LeaderStatus, at: datetime) -> list[str]:
    from ..operating.words import counted
    from .paint import paint

    told = []
    if leader.holder:
        told.append(f"led by {_holding(leader.holder, at)}")
    elif not leader.paused:
        told.append(paint("nobody leads", "red"))
    if leader.paused:
        told.append(_pause(leader.paused))
    if leader.differing:
        told.append(_differ())
    told.append(f"{counted(leader.servers, 'server')} can lead" if leader.servers else _nobody())
    return told


def _worked(records: RecordStatus, at: datetime) -> list[str]:
    """How much is left is not told here: that takes a look at the table."""
    from ..operating.words import counted
    from .paint import paint

    rate = f"{records.rate:,.1f}/s, {records.in_flight:,} in flight"
    told = [f"worked by {counted(records.servers, 'server')}: {rate}" if records.servers else _nobody()]
    if records.held:
        told.append(paint(records.held, "yellow"))
    if records.paused:
        told.append(_pause(records.paused))
    if records.swept:
        told.append(f"swept {_ago(at - records.swept.at)}: {records.swept.outcome}")
    return told


def _held(lock: LockStatus, at: datetime) -> str:
    return f"held by {_holding(lock.holder, at)}"


def _holding(holder: Holding, at: datetime) -> str:
    """Who, since when, and how long the lease lasts unless renewed."""
    from ..operating.words import server, time_of_day

    since = ""
    if holder.since is not None:
        since = f" since {time_of_day(holder.since.astimezone().replace(microsecond=0))}"
    asked = " (asked for by hand)" if holder.manual else ""
    return f"{server(holder.owner)}{since}, lease left {_words(holder.until - at)}{asked}"


def _ahead(instant: datetime | None, at: datetime) -> str:
    return "-" if instant is None else f"in {_words(instant - at)}"


def _ago(gap: timedelta) -> str:
    return f"{_words(gap)} ago"


def _paused() -> str:
    from .paint import paint

    return paint("paused", "yellow")


def _words(gap: timedelta) -> str:
    """The largest unit only, which is enough in a table."""
    from ..operating.words import length

    return " ".join(length(max(0, round(gap.total_seconds() * 1000))).split()[:2])
