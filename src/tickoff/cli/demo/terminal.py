"""The show on a terminal: lines in colours, and below them one that moves."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .show import Tone, figures

_INDENT = "   "
_BAR = 24


class TerminalShow:
    """Written above a live line, which goes when something was said."""

    def __init__(self, console: Console) -> None:
        self._live = Live(Text(), console=console, refresh_per_second=12, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def act(self, number: int, title: str) -> None:
        """A title, after an empty line."""
        self._above(Text(f"\n{number}. {title}", style=Tone.TITLE))

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """A line above the one that moves."""
        self._above(Text(f"{_INDENT}{text}" if text else "", style=tone))

    def quote(self, lines: Sequence[str]) -> None:
        """The lines, not indented."""
        for line in lines:
            self._above(Text(line))

    def now(self, text: str) -> None:
        """The line that moves."""
        self._live.update(Text(f"{_INDENT}{text}", style="yellow"))

    def count(self, text: str) -> None:
        """The line that moves, too."""
        self.now(text)

    def rows(self, decided: int, total: int, rate: float) -> None:
        """A bar, and the figures."""
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(total, 1), completed=decided, width=_BAR)
        line.add_row(_INDENT, bar, figures(decided, total, rate))
        self._live.update(line)

    def _above(self, line: RenderableType) -> None:
        self._live.update(Text(), refresh=True)  # else the old one is drawn once more
        self._live.console.print(line)
