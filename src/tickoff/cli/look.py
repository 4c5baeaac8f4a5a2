"""`tickoff history` and `tickoff explain`: what was, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .opening import as_text, fleet, fleet_options, json_option, name_argument

if TYPE_CHECKING:
    from ..operating.past import PastRun


@click.command(short_help="Show the last runs of a job.")
@name_argument
@click.option("-n", "count", metavar="COUNT", type=click.IntRange(1, 1000), default=20, show_default=True)
@fleet_options
@json_option
def history(
    name: str, count: int, url: str | None, namespace: str | None, app: str | None, as_json: bool
) -> None:
    """Show the last runs of a job, newest first: its ticks, how they ended, how long they took, where."""
    with fleet(url, namespace, app) as jobs:
        runs = jobs.history(name, count)
    click.echo(as_text(runs) if as_json else "\n".join(_page(name, runs)))


@click.command(short_help="Say in a sentence why a job ran, or did not.")
@name_argument
@click.argument("tick", required=False)
@fleet_options
@json_option
def explain(
    name: str, tick: str | None, url: str | None, namespace: str | None, app: str | None, as_json: bool
) -> None:
    """Say in a sentence what became of a tick: who ran it and how it ended, or why nobody did.

    TICK is a time such as 02:30 (the last one), "2026-03-29 02:30" or 2026-03-29T02:30Z; in this machine's
    zone unless it says another. Without it, the last tick that was due is explained.
    """
    from .moments import instant_of

    wanted = None if tick is None else instant_of(tick)
    with fleet(url, namespace, app) as jobs:
        told = jobs.explain(name, wanted)
    click.echo(as_text(told) if as_json else click.wrap_text(told.text, _width()))


def _page(name: str, runs: tuple[PastRun, ...]) -> list[str]:
    from .paint import details, table

    if not runs:
        return [f"{name} has not run yet"]
    head, *lines = table(("TICK", "OUTCOME", "TOOK", "BY"), [_row(run) for run in runs])
    return [head] + [
        line
        for run, row in zip(runs, lines, strict=True)
        for line in (row, *(details(told) for told in _details(run)))
    ]


def _row(run: PastRun) -> tuple[str, str, str, str]:
    from ..model import Outcome
    from ..operating.words import length, server
    from .paint import painted

    tick = f"{run.tick.astimezone().replace(microsecond=0):%Y-%m-%d %H:%M:%S %Z}"
    took = "-" if run.outcome is Outcome.SKIPPED else length(round(run.seconds * 1000))
    return tick, painted(run.outcome), took, server(run.owner)


def _details(run: PastRun) -> list[str]:
    """What is not so with most runs."""
    told = [run.error] if run.error else []
    if run.manual:
        told.append("asked for by hand")
    if run.attempt > 1:
        told.append(f"attempt {run.attempt}")
    return ["; ".join(told)] if told else []


def _width() -> int:
    from .paint import width

    return min(width(), 100)
