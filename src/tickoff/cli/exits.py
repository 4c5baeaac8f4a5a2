"""What the command's exit status says, and how an error is put on stderr."""

from __future__ import annotations

import click

from ..errors import ConfigError, StoreUnreachable

FAILED = 1
MISUSED = 2
UNREACHABLE = 125
INTERRUPTED = 130


def report(error: Exception) -> int:
    """Say what is wrong in one line on stderr; the exit status that goes with it."""
    click.echo(f"tickoff: {' '.join(str(error).split())}", err=True)
    match error:
        case ConfigError():
            return MISUSED
        case StoreUnreachable():
            return UNREACHABLE
        case _:
            return FAILED
