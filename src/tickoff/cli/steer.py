"""`tickoff trigger`, `pause`, `resume`, `release`: orders to a fleet, each with who gave it, and why."""

from __future__ import annotations

import click

from .opening import fleet, fleet_options, name_argument, why_option


@click.command(short_help="Run a job once, now, on a server of the fleet.")
@name_argument
@fleet_options
def trigger(name: str, url: str | None, namespace: str | None, app: str | None) -> None:
    """Ask the fleet to run a job once, now; the first server with a free slot does, within seconds.

    The run is marked as manual; schedules go on as if it had not been.
    """
    from ..operating.words import counted

    with fleet(url, namespace, app) as jobs:
        job = jobs.trigger(name)
    if job.servers:
        click.echo(f"asked for a run of {name}; {counted(job.servers, 'server')} can take it")
    else:
        click.echo(f"asked for a run of {name}; no server is there, so it waits for one, an hour at most")


@click.command(short_help="Start no more ticks of a job, on any server.")
@name_argument
@why_option
@fleet_options
def pause(name: str, why: str, url: str | None, namespace: str | None, app: str | None) -> None:
    """Start no more ticks of a job, on any server, until it is resumed; what runs goes on."""
    with fleet(url, namespace, app) as jobs:
        job = jobs.pause(name, why)
    running = "; the run under way goes on" if job.running else ""
    click.echo(f"paused {name}: {why}{running}")


@click.command(short_help="Start ticks of a paused job again.")
@name_argument
@fleet_options
def resume(name: str, url: str | None, namespace: str | None, app: str | None) -> None:
    """Start ticks of a paused job again; those that fell into the pause are not made up for."""
    from ..operating.words import clock

    with fleet(url, namespace, app) as jobs:
        job = jobs.resume(name)
    following = f"; its next tick is {clock(job.next.astimezone())}" if job.next else ""
    click.echo(f"resumed {name}{following}")


@click.command(short_help="Take a name away from whoever holds it.")
@name_argument
@why_option
@fleet_options
def release(name: str, why: str, url: str | None, namespace: str | None, app: str | None) -> None:
    """Take a job or a lock away from whoever holds it, so that another may have it at once.

    The holder is told at its next renewal, and what it writes under its old fence is refused. It is not
    ended: make sure that it is dead, or that its work is guarded.
    """
    from ..operating.words import server

    with fleet(url, namespace, app) as jobs:
        job = jobs.release(name, why)
    holder = server(job.running.owner) if job.running else "its holder"
    click.echo(f"released {name}, which {holder} held: {why}")
