"""`tickoff once`: a crontab line that all servers have, and one of them runs."""

from __future__ import annotations

import os

import click

from ..durations import timeout_seconds, ttl_ms
from ..ground.clocks import elapsed
from ..model import Skipped
from ..names import check_namespace, full_name
from ..schedules.schedule import host_zone, schedule_of
from ..ticks.once import Won, plan, win
from .child import Child
from .exits import WRAPPER_FAILED, say
from .interrupts import ending_tidily, held_back
from .supervise import supervise
from .wrapping import STATUSES, Wrapper, refereed, wrapping


@click.command(cls=Wrapper, short_help="Run a command on one server per tick: for crontabs.", epilog=STATUSES)
@wrapping
@click.option("--cron", metavar="EXPR", help='When the crontab fires it, such as "0 * * * *" or @daily.')
@click.option("--every", metavar="D", help="The same as a period, counted from midnight UTC, 1 January 1970.")
@click.option("--tz", metavar="ZONE", help="Zone of --cron; this machine's by default, as cron has it.")
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="Starts of a tick that failed.")
@click.option(
    "--recover",
    type=click.Choice(["next", "now"]),
    default="next",
    show_default=True,
    help="After a crash of the server: leave it to the next tick, or wait and take over now.",
)
def once(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    namespace: str | None,
    cron: str | None,
    every: str | None,
    tz: str | None,
    ttl: str,
    timeout: str | None,
    attempts: int | None,
    recover: str,
    skipped_status: int,
) -> int:
    """Run COMMAND on one server per tick, though the crontabs of all servers fire it.

    The tick is the latest instant of the schedule, so a server that is seconds or minutes late does not
    run it a second time.

    \b
    Example, in the crontab of every server:
      TICKOFF_URL=redis://localhost:6379/0
      0 * * * *  tickoff once import-products --cron "0 * * * *" -- ./import.sh --all

    The command sees TICKOFF_JOB, TICKOFF_TICK (the instant, such as 2026-11-19T21:00:00Z) and TICKOFF_FENCE.
    """  # noqa: D301 - the escapes are click's
    zone = host_zone() if cron is not None and tz is None else tz
    made = plan(
        job=name,
        schedule=schedule_of(cron, every, zone),
        ttl=ttl_ms(ttl, "--ttl"),
        timeout=timeout_seconds(timeout, "--timeout"),
        attempts=attempts,
        recover=recover,
    )
    full = full_name(check_namespace(namespace), name)
    with ending_tidily(), Child(command) as child, refereed(url) as referee:
        won = win(referee, made, full)
        return skipped_status if isinstance(won, Skipped) else _run(child, won)


def _run(child: Child, won: Won) -> int:
    try:
        finish = supervise(child, won.lease, _variables(won), won.plan.timeout)
    except BaseException:
        if not child.started:
            won.referee.leave(won.lease)  # given back unstarted: another server may run it
        raise
    with held_back():
        ours = won.settle(finish.end)
    won.referee.settler.flush(max(0.0, won.lease.deadline - elapsed()))
    if finish.status == os.EX_OK and not ours:
        say(f"the lease was lost before the command ended: {won.lease.why_lost}")
        return WRAPPER_FAILED
    return finish.status


def _variables(won: Won) -> dict[str, str]:
    tick = won.tick
    instant = tick.at.isoformat().replace("+00:00", "Z")
    return {"TICKOFF_JOB": tick.job, "TICKOFF_TICK": instant, "TICKOFF_FENCE": str(tick.fence)}
