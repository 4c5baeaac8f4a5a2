"""`tickoff next` shows when a schedule ticks, before anything depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING

import click

from .opening import fleet, fleet_options, json_option, name_argument

if TYPE_CHECKING:
    from ..schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class _Line:
    """One tick as it is shown."""

    at: datetime
    local: datetime
    wait: int
    note: str


@click.command("next", short_help="Show when a job or a schedule ticks next.")
@partial(name_argument, required=False)
@click.option("--cron", metavar="EXPR", help='A cron line such as "30 2 * * *", or @hourly.')
@click.option("--every", metavar="D", help="A period such as 30s or 1h30m, counted from the epoch.")
@click.option(
    "--tz", metavar="Z", help="The zone of --cron, such as Europe/Berlin; this host's unless given."
)
@click.option("-n", "count", metavar="COUNT", type=click.IntRange(1, 1000), default=5, show_default=True)
@fleet_options
@json_option
def next_ticks(
    name: str | None,
    cron: str | None,
    every: str | None,
    tz: str | None,
    count: int,
    url: str | None,
    namespace: str | None,
    app: str | None,
    as_json: bool,
) -> None:
    """Show when a job, or a schedule, ticks next: by its zone's clocks, in UTC, and how long from now.

    A tick that is moved or doubled because clocks are put forward or back says so.

    \b
    Examples:
      tickoff next import-products --url redis://localhost:6379/0
      tickoff next --cron "30 2 * * *" --tz Europe/Berlin -n 3
    """  # noqa: D301 - click keeps the lines of a block that begins with \b
    from itertools import islice

    from ..ground.clocks import wall
    from ..schedules.schedule import host_zone, schedule_of, ticks

    if name is not None:
        _refuse_both(cron, every, tz)
        with fleet(url, namespace, app) as jobs:
            schedule = jobs.schedule(name)
    else:
        zone = host_zone() if cron is not None and tz is None else tz
        schedule = schedule_of(cron, every, zone)
    now = wall()
    lines = list(_lines(schedule, list(islice(ticks(schedule, now), count)), now))
    click.echo(_json(schedule, lines, now) if as_json else _table(schedule, lines))


def _refuse_both(*options: str | None) -> None:
    if any(option is not None for option in options):
        raise click.UsageError("NAME has a schedule of its own; leave out --cron, --every and --tz")


def _lines(schedule: Schedule, found: list[int], now: int) -> Iterator[_Line]:
    from ..model import moment
    from ..schedules.schedule import Cron

    zone = _zone(schedule)
    for tick in found:
        note = schedule.note(tick) if isinstance(schedule, Cron) else ""
        yield _Line(moment(tick), moment(tick).astimezone(zone), tick - now, note)


def _zone(schedule: Schedule) -> tzinfo:
    """The zone whose clocks are shown: the schedule's, or this host's for a period, which has none."""
    from ..errors import ConfigError
    from ..schedules.schedule import Cron
    from ..schedules.zones import host_zone, load

    if isinstance(schedule, Cron):
        return load(schedule.tz)
    try:
        return load(host_zone())
    except ConfigError:  # the ticks do not depend on it: UTC is shown anyway
        return load("UTC")


def _json(schedule: Schedule, lines: list[_Line], now: int) -> str:
    import json

    ticks = [
        {
            "at": line.at.isoformat(),
            "local": line.local.isoformat(),
            "in_seconds": line.wait / 1000,
            "note": line.note,
        }
        for line in lines
    ]
    return json.dumps({"schedule": schedule.text, "digest": schedule.digest(now), "ticks": ticks}, indent=2)


def _table(schedule: Schedule, lines: list[_Line]) -> str:
    """A line for each tick, and below it what clocks have to do with it."""
    from ..operating.words import clock, length, time_of_day
    from .paint import details

    utc = [f"{line.at:%Y-%m-%d} {time_of_day(line.at)}" for line in lines]
    rows = [(clock(line.local), at, f"in {length(line.wait)}") for line, at in zip(lines, utc, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = [schedule.text]
    for line, row in zip(lines, rows, strict=True):
        told.append("  ".join(map(str.ljust, row, widths)).rstrip())
        told += [details(line.note)] if line.note else []
    return "\n".join(told)
