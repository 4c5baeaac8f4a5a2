"""`tickoff serve` runs the jobs of an application, and writes a line to stderr for each outcome."""

from __future__ import annotations

import click

from .apps import app_option, load_app


@click.command(short_help="Run the schedules of an application until SIGTERM.")
@app_option
@click.option("--only", metavar="NAME", help="Serve this one alone.")
def serve(app: str | None, only: str | None) -> None:
    """Run the schedules, leaders and records of an application until SIGTERM or Ctrl-C.

    The first signal lets what runs end within the grace, the second one ends it now.

    \b
    Example:
      tickoff serve --app shop.jobs
    """  # noqa: D301 - click keeps the lines of a block that begins with \b
    from .logs import log_to_stderr

    log_to_stderr()
    jobs = load_app(app)
    try:
        jobs.serve(only=only)
    finally:
        jobs.close()
