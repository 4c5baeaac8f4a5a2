"""The log of a program of ours: a line for each outcome, by local time, in colours on a terminal."""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime

import click

_COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


class Lines(logging.Formatter):
    """The time with its zone, the level, the message; a traceback below it."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._colours = colours

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's
        """The local time with its zone."""
        return f"{datetime.fromtimestamp(record.created).astimezone():%Y-%m-%d %H:%M:%S %Z}"

    def format(self, record: logging.LogRecord) -> str:
        """The line, in the colour of its level."""
        text = super().format(record)
        colour = _COLOURS.get(record.levelno)
        return click.style(text, fg=colour) if colour and self._colours else text


def log_to_stderr() -> None:
    """Let everybody who logs be heard: Tickoff from INFO on, the others from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(colours=sys.stderr.isatty() and not os.environ.get("NO_COLOR")))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("tickoff").setLevel(logging.INFO)
