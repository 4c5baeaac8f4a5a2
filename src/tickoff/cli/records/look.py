"""`tickoff records ls` and `tickoff records show NAME [KEY…]`: how far, and why is this row stuck."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from ..apps import load_app
from ..exits import FAILED
from .common import app_option, json_option, name_argument, opened, say

if TYPE_CHECKING:
    from ...records.operator import Records
    from ...records.progress import Progress
    from ...tables.seen import Standing


@click.command(short_help="List the jobs over records, and how far each is.")
@app_option
@json_option
def ls(app: str | None, *, as_json: bool) -> None:
    """List the application's jobs over records, with the states of their rows."""
    listed = []
    jobs = load_app(app)
    try:
        for name in jobs.record_names():
            with jobs.records(name) as records:
                listed.append((name, records.job.plan.table, records.progress()))
    finally:
        jobs.close()
    answer = [{"name": name, "table": table} | _plain(progress) for name, table, progress in listed]
    text = "\n".join(f"{name}  {table}  {_states(one)}{_paused(one)}" for name, table, one in listed)
    say(answer, text or "no jobs over records", as_json=as_json)


@click.command(short_help="Show how far a job is, or why a row is where it is.")
@name_argument
@click.argument("key", nargs=-1)
@app_option
@json_option
@click.pass_context
def show(context: click.Context, name: str, key: tuple[str, ...], app: str | None, *, as_json: bool) -> None:
    """Show how far NAME is; with KEY (its columns in order), the state of that row and what it waits for."""
    with opened(app, name) as records:
        if not key:
            progress = records.progress()
            say(_plain(progress), _described(name, progress), as_json=as_json)
            return
        standing = records.table.show(records.table.key_of(key))
        if standing is None:
            click.echo(f"tickoff: {name} has no row {' '.join(key)}", err=True)
            context.exit(FAILED)
        say(_row(standing), _explained(standing, records), as_json=as_json)


def _plain(progress: Progress) -> dict[str, Any]:
    derived = {
        "total": progress.total,
        "rate": round(progress.rate, 2),
        "eta": progress.eta,
        "possibly_repeated": progress.possibly_repeated,
    }
    return asdict(progress) | derived


def _states(progress: Progress) -> str:
    return (
        f"{progress.done} done, {progress.failed} failed, {progress.in_flight} in flight, "
        f"{progress.pending} pending"
    )


def _paused(progress: Progress) -> str:
    return f"  PAUSED by {progress.paused_by}: {progress.paused_why}" if progress.paused else ""


def _described(name: str, progress: Progress) -> str:
    lines = [f"{name}: {_states(progress)}{_paused(progress)}"]
    lines += [
        f"  {one.server}  {one.in_flight} in flight, {one.rate:.1f}/s, {one.counts.refused} answers refused, "
        f"at most {one.repeat} calls repeated if it died now"
        for one in progress.servers
    ]
    lines += [
        f"  {one.owner}  says nothing, and has claimed {one.records} until {one.until:%H:%M:%S} UTC"
        for one in progress.silent
    ]
    return "\n".join(lines)


def _row(standing: Standing) -> dict[str, Any]:
    known = asdict(standing) | {"row": dict(standing.row._mapping)}
    return known | {"until": _instant(standing.until)}


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _explained(standing: Standing, records: Records) -> str:
    """The state, and what has to happen for the row to go on."""
    used = f"{standing.attempts} of {records.job.attempts} attempts used"
    lines = [f"{' '.join(map(str, standing.key))}: {standing.state}, {used}", f"  {_why(standing)}"]
    if standing.error:
        lines.append(f"  last error: {standing.error}")
    answer = standing.answer if standing.state == "DONE" else {}
    return "\n".join([*lines, *(f"  {column} = {value!r}" for column, value in answer.items())])


def _why(standing: Standing) -> str:
    until = "-" if standing.until is None else f"{standing.until:%Y-%m-%d %H:%M:%S} UTC"
    match standing.state:
        case "DONE":
            changed = (
                "; the row was changed since, tickoff records reopen --changed works it" * standing.changed
            )
            return f"done at {until}{changed}"
        case "FAILED":
            return f"given up at {until}; tickoff records retry makes it PENDING again"
        case "IN_FLIGHT":
            return f"held by {standing.owner or 'a server nobody knows'} until {until} unless renewed"
        case _:
            alone = "; its last server died, so it is worked alone" if standing.suspect else ""
            return f"waits for a server{'' if standing.until is None else f', not before {until}'}{alone}"
