"""`tickoff records run NAME --dry-run` and `--sample N`: see what a pass would do before it does it."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .common import say

if TYPE_CHECKING:
    from ...records.canary import Sampled
    from ...records.operator import Records

LARGEST = 1000


def dry_run(records: Records, *, as_json: bool) -> None:
    """Plan, SQL and counts; nothing is called and nothing is written."""
    from ...tables.base import State

    records.table.check()
    job, counts = records.job, records.table.counts()
    left = counts[State.PENDING] + counts[State.IN_FLIGHT]
    calls = -(-left // job.records_per_call)
    told: dict[str, Any] = {
        "job": job.name,
        "table": job.plan.table,
        "companion": job.plan.companion,
        "states": {str(state): count for state, count in counts.items()},
        "calls": calls,
        "changed": records.table.changed() if job.plan.companion else None,
        "sql": records.table.statements(),
    }
    states = ", ".join(f"{count} {state}" for state, count in told["states"].items())
    lines = [f"{job.name}: {job.plan.table} has {states}; {calls} calls would be made, none is now"]
    if told["changed"]:
        lines.append(
            f"{told['changed']} DONE rows were changed since; tickoff records reopen --changed works them"
        )
    say(told, "\n".join([*lines, *told["sql"]]), as_json=as_json)


def passed_canary(records: Records, size: int, stop: threading.Event, *, yes: bool, as_json: bool) -> bool:
    """Call some random records, show what came, ask; whether to go on. Answers are written only then."""
    canary = records.canary()
    try:
        sampled = canary.run(size, stop)
    except BaseException:
        canary.give_back()
        raise
    click.echo(_shown(sampled), err=as_json)
    if yes or (not stop.is_set() and _agreed()):
        canary.keep()
        return True
    canary.give_back()
    say(asdict(sampled), "Nothing was written.", as_json=as_json)
    return False


def _agreed() -> bool:
    try:
        return click.confirm("Go on with all of them?", err=True)
    except click.Abort:  # nobody is there to be asked
        return False


def _shown(sampled: Sampled) -> str:
    lines = [f"{sampled.records} records were called: {sampled.done} answered"]
    lines += [f"  {key}: {_values(values)}" for key, values in sampled.answers.items()]
    lines += [f"  {times} x {kind}" for kind, times in sampled.errors.items()]
    lines.append(
        f"{sampled.left} records are left: {sampled.calls} calls if each is made once, "
        f"about {sampled.projected:.0f} s for a process as fast as this one"
    )
    return "\n".join(lines)


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{column} = {value!r}" for column, value in values.items()) or "done"
