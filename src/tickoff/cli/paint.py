"""Tables and colours for people: 80 columns unless the terminal is wider, colours on a terminal only."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence

import click

from ..model import Outcome

WIDTH = 80

_COLOURS = {Outcome.OK: "green", Outcome.SKIPPED: "yellow"}
_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def width() -> int:
    """The columns there are."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def paint(text: str, colour: str) -> str:
    """The text in a colour; click takes it out again where there is no terminal."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def painted(outcome: Outcome) -> str:
    """An outcome in its colour: all that is neither well nor harmless is red."""
    return paint(str(outcome), _COLOURS.get(outcome, "red"))


def shortened(text: str, limit: int) -> str:
    """The text, cut where it is too long."""
    plain = _PAINT.sub("", text)
    return text if len(plain) <= limit else plain[: max(limit - 1, 0)] + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], limits: Sequence[int]) -> list[str]:
    """Lines of columns as wide as their widest cell, none beyond its limit."""
    short = [[shortened(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in rows]
    columns = zip(head, *short, strict=True)
    widths = [max(_length(cell) for cell in column) for column in columns]
    lines = [_line([paint(cell, "bright_black") for cell in head], widths)]
    return lines + [_line(row, widths) for row in short]


def details(text: str) -> str:
    """A line below a row, about it."""
    return shortened(f"  {text}", width())


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (size - _length(cell)) for cell, size in zip(cells, widths, strict=True))
    return shortened("  ".join(padded).rstrip(), width())


def _length(text: str) -> int:
    return len(_PAINT.sub("", text))
