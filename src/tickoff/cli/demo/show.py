"""The demo on a terminal, as a table that grows, and in a pipe, as plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

import click

from .verdict import Round, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_YOUR_OWN = """\
from tickoff import Tickoff
jobs = Tickoff("sqlite:///tickoff.db")  # or redis://, postgresql://, mysql://
jobs.run_with_lock("hello", lambda: print("one server at a time"), ttl="60s")"""

_COLUMNS = ("round", "winner", "pid", "stepped aside", "fence", "all asked within")
_WIDTHS = (5, 6, 8, 13, 14, 16)


class Show(Protocol):
    """How the race is shown while it runs."""

    def opening(self, servers: int, rounds: int, where: str) -> None:
        """Say what is about to happen."""
        ...

    def rounds(self) -> AbstractContextManager[object]:
        """The time in which rounds come in."""
        ...

    def round(self, one: Round) -> None:
        """Show a round that ended."""
        ...

    def closing(self, verdict: Verdict) -> None:
        """Give the verdict, and the lines to start one's own."""
        ...


def show_for(plain: bool) -> Show:
    """A table on a terminal, lines elsewhere."""
    if plain or not sys.stdout.isatty():
        return PlainShow()
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    return PlainShow() if console.is_dumb_terminal else TerminalShow(console)


class PlainShow:
    """Aligned lines, each written at once."""

    def opening(self, servers: int, rounds: int, where: str) -> None:
        """The title and the head of the columns."""
        click.echo(f"{_title(servers, rounds)}\non {where}\n\n{_aligned(_COLUMNS)}")

    def rounds(self) -> AbstractContextManager[object]:
        """Nothing to prepare."""
        return nullcontext()

    def round(self, one: Round) -> None:
        """One line."""
        click.echo(_aligned(_cells(one)))

    def closing(self, verdict: Verdict) -> None:
        """The count, the verdict, the lines."""
        click.echo(f"\n{_counted(verdict)}\n{_judged(verdict)}\n\n{_invitation()}")


class TerminalShow:
    """A table that grows while the rounds come in."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._table: Table | None = None
        self._live: Live | None = None

    def opening(self, servers: int, rounds: int, where: str) -> None:
        """The title."""
        self._console.print(f"[bold]{_title(servers, rounds)}[/bold]")
        self._console.print(f"on {where}\n", markup=False)

    @contextmanager
    def rounds(self) -> Iterator[None]:
        """The table, alive."""
        from rich.box import SIMPLE_HEAD
        from rich.live import Live
        from rich.table import Table

        self._table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in _COLUMNS:
            self._table.add_column(column, justify="right", no_wrap=True)
        with Live(self._table, console=self._console, refresh_per_second=12):
            yield

    def round(self, one: Round) -> None:
        """One row, red unless one server won it."""
        if self._table is not None:
            style = None if len(one.winners) == 1 else "bold red"
            self._table.add_row(*_cells(one), style=style)

    def closing(self, verdict: Verdict) -> None:
        """The count, the verdict, the lines."""
        self._console.print(_counted(verdict))
        self._console.print(_judged(verdict), style="bold green" if verdict.held else "bold red")
        self._console.print(f"\n{_invitation()}", markup=False)


def _title(servers: int, rounds: int) -> str:
    return f"{servers} servers, each a process of its own, race {rounds} times for one name"


def _cells(one: Round) -> tuple[str, ...]:
    won = one.winners
    return (
        str(one.number),
        "+".join(str(turn.server) for turn in won) or "none",
        "+".join(str(turn.pid) for turn in won) or "-",
        str(one.aside),
        str(max((turn.fence for turn in won), default="-")),
        f"{one.spread * 1000:.1f} ms",
    )


def _aligned(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))


def _counted(verdict: Verdict) -> str:
    """What the logs say; they lie outside the store, so it cannot colour them."""
    return (
        f"Counted from {verdict.servers} logs that the servers kept outside the store:\n"
        f"{verdict.races} races in {len(verdict.rounds)} rounds, {verdict.winners} winners, "
        f"{verdict.doubles} doubles, {verdict.without} rounds without a winner."
    )


def _judged(verdict: Verdict) -> str:
    if verdict.held:
        return "It held: one winner in every round, and fences only grew."
    return "IT DID NOT HOLD: please report this, with the store and its version."


def _invitation() -> str:
    return f"Your own, in Python:\n\n{_YOUR_OWN}"
