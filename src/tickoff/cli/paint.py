"""Tables and colours for people: 80 columns unless the terminal is wider, colours on a terminal only."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
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
    if columns(text) <= limit:
        return text
    kept, left = [], limit - 1
    for char in _PAINT.sub("", text):
        left -= _width_of(char)
        if left < 0:
            break
        kept.append(char)
    return "".join(kept) + "…"


def columns(text: str) -> int:
    """How much room it takes on a terminal: that of Chinese or Japanese is twice its length."""
    plain = _PAINT.sub("", text)
    return len(plain) if plain.isascii() else sum(map(_width_of, plain))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns as wide as their widest cell; where they do not fit, the widest column gives way."""
    cells = zip(head, *rows, strict=True)
    widths = _fitting([max(map(columns, column)) for column in cells])
    lines = [_line([paint(cell, "bright_black") for cell in head], widths)]
    return lines + [_line(row, widths) for row in rows]


def _fitting(widths: list[int]) -> list[int]:
    room = width() - 2 * (len(widths) - 1)
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def details(text: str) -> str:
    """A line below a row, about it."""
    return shortened(f"  {text}", width())


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    short = [shortened(cell, size) for cell, size in zip(cells, widths, strict=True)]
    padded = (cell + " " * (size - columns(cell)) for cell, size in zip(short, widths, strict=True))
    return "  ".join(padded).rstrip()


def _width_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
