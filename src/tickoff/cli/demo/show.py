"""How the show is told: on a terminal in colours with a line that moves, in a pipe as plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

import click

from ...model import moment


class Tone(StrEnum):
    """What a line is: the styles of a terminal."""

    PLAIN = ""
    DIM = "dim"
    GOOD = "green"
    BAD = "red"
    TITLE = "bold"
    HELD = "bold green"
    BROKEN = "bold red"


class Show(Protocol):
    """What an act may tell while it is played."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def act(self, number: int, title: str) -> None:
        """An act begins."""
        ...

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """A line that stays."""
        ...

    def quote(self, lines: Sequence[str]) -> None:
        """Lines to be copied, as they are."""
        ...

    def now(self, text: str) -> None:
        """How it stands at this moment; the next such line takes its place."""
        ...

    def count(self, text: str) -> None:
        """The same, of something that goes on for seconds."""
        ...

    def rows(self, decided: int, total: int, rate: float) -> None:
        """How far the rows are at this moment."""
        ...


class PlainShow:
    """Lines, each written at once; of what moves, one a second."""

    _EVERY = 1.0

    def __init__(self) -> None:
        self._told_at = 0.0
        self._told = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left open."""

    def act(self, number: int, title: str) -> None:
        """A title, after an empty line."""
        click.echo(f"\n{number}. {title}")

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:  # noqa: ARG002 - plain is plain
        """A line."""
        self._told_at = time.monotonic()
        click.echo(f"   {text}" if text else "")

    def quote(self, lines: Sequence[str]) -> None:
        """The lines, not indented."""
        click.echo("\n".join(lines))

    def now(self, text: str) -> None:
        """Nothing: the line that stays will follow."""

    def count(self, text: str) -> None:
        """A line a second at most."""
        if time.monotonic() - self._told_at >= self._EVERY and text != self._told:
            self.say(text)
            self._told = text

    def rows(self, decided: int, total: int, rate: float) -> None:
        """The same in figures."""
        self.count(figures(decided, total, rate))


def show_for(plain: bool) -> Show:
    """Colours on a terminal, lines elsewhere."""
    if plain or not sys.stdout.isatty():
        return PlainShow()
    from rich.console import Console

    from .terminal import TerminalShow

    console = Console(highlight=False, soft_wrap=False)
    return PlainShow() if console.is_dumb_terminal else TerminalShow(console)


def figures(decided: int, total: int, rate: float) -> str:
    """Such as "1,204 of 2,000 rows   231/s   3 s to go"."""
    left = f"   {(total - decided) / rate:.0f} s to go" if rate >= 1 and decided < total else ""
    return f"{decided:5,} of {total:,} rows   {rate:4.0f}/s{left}"


def at_clock(tick: int) -> str:
    """The time of day of a tick, in UTC."""
    return f"{moment(tick):%H:%M:%S}"
