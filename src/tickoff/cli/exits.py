"""What the command's exit status says, and how an error is put on stderr."""

from __future__ import annotations

import contextlib

import click

from ..errors import ConfigError, StoreUnreachable

FAILED = 1
MISUSED = 2
TIMED_OUT = 124
UNREACHABLE = 125
WRAPPER_FAILED = 125
CANNOT_EXECUTE = 126
NOT_FOUND = 127
INTERRUPTED = 130


def say(text: str) -> None:
    """Words of our own, in one line on stderr; a closed stderr ends nothing that is under way."""
    with contextlib.suppress(OSError):
        click.echo(f"tickoff: {' '.join(text.split())}", err=True)


def report(error: Exception) -> int:
    """Say what is wrong in one line on stderr; the exit status that goes with it."""
    say(str(error))
    match error:
        case ConfigError():
            return MISUSED
        case StoreUnreachable():
            return UNREACHABLE
        case _:
            return FAILED
