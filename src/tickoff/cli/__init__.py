"""The command line. A command imports what it needs when it runs, so that none pays for the others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ..errors import TickoffError
from .demo import demo
from .doctor import doctor
from .exits import INTERRUPTED, report
from .lock import lock
from .look import explain, history
from .ls import ls
from .next import next_ticks
from .once import once
from .records import records
from .schema import migrate, schema
from .serve import serve
from .steer import pause, release, resume, trigger


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tickoff", message="%(prog)s %(version)s")
def program() -> None:
    """Every tick once. Every row once.

    Leases, ticks and records for a fleet, on the Redis or the database it already has.
    """


_COMMANDS = (demo, once, lock, serve, next_ticks, records, schema, migrate)
_OPERATING = (ls, history, explain, trigger, pause, resume, release, doctor)

for _command in (*_COMMANDS, *_OPERATING):
    program.add_command(_command)


def main() -> None:
    """Run the command line and exit with its status."""
    _claim_streams()
    sys.exit(_status())


def _claim_streams() -> None:
    """Open those that are closed, or what is opened next would take their place, and get what is said."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - as long as we live


def _status() -> int:
    """What the command returned, or what its error means to a shell; only bugs leave a traceback."""
    try:
        return program.main(prog_name="tickoff", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (TickoffError, OSError) as error:  # a full disk is no bug of ours either
        return report(error)
