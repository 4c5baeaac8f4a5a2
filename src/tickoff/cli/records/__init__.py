"""`tickoff records …`: work, watch and steer the records of an application's jobs."""

from __future__ import annotations

import click

from .install import install, uninstall
from .look import ls, show
from .run import run
from .steer import pause, reopen, resume, retry, sweep


@click.group(short_help="Work, watch and steer the rows of your tables.")
def records() -> None:
    """Work, watch and steer the rows that @jobs.each works through."""


for _command in (ls, show, run, install, uninstall, pause, resume, retry, reopen, sweep):
    records.add_command(_command)
