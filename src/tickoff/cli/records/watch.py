"""A pass as it is watched: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ...errors import StoreUnreachable
from ...ground.clocks import elapsed
from ...operating.words import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ...records.operator import Records
    from ...records.progress import Progress

_ON_TERMINAL, _IN_PIPE = 0.5, 10.0
"""Seconds between two looks."""

Look = Callable[[], None]


class Sometimes:
    """Looks at the progress every so often, and hands it on."""

    def __init__(self, records: Records, every: float, show: Callable[[Progress], None]) -> None:
        self._records = records
        self._every = every
        self._show = show
        self._next = elapsed() + min(every, 1.0)

    def __call__(self) -> None:
        """Look, if it is time; a store that does not answer is passed over, the worker tells of it."""
        if elapsed() < self._next:
            return
        try:
            self._show(self._records.progress())
        except StoreUnreachable as error:
            click.echo(f"tickoff: no progress to show: {error}", err=True)
        self._next = elapsed() + self._every


@contextmanager
def watching(records: Records, *, quiet: bool) -> Iterator[Look]:
    """Something to be called all the time while the pass runs."""
    if quiet:
        yield _look_away
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        with _live(records, console) as look:
            yield look
    else:
        yield Sometimes(records, _IN_PIPE, _line)


def _look_away() -> None:
    """Nothing is shown."""


def _line(progress: Progress) -> None:
    click.echo(in_words(progress), err=True)


@contextmanager
def _live(records: Records, console: Console) -> Iterator[Look]:
    from rich.live import Live

    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield Sometimes(records, _ON_TERMINAL, lambda progress: live.update(_drawn(progress)))


def _drawn(progress: Progress) -> RenderableType:
    """A bar, the words under it, and a row for each server."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    decided = progress.done + progress.failed
    bar = ProgressBar(total=max(progress.total, 1), completed=decided, width=60)
    servers = Table(
        "server", "in flight", "done", "failed", "refused", "per second", box=None, pad_edge=False
    )
    for one in progress.servers:
        counts = (one.in_flight, one.counts.done, one.counts.failed, one.counts.refused)
        servers.add_row(one.server, *(f"{count:,}" for count in counts), f"{one.rate:,.1f}")
    return Group(bar, Text(in_words(progress)), servers)


def in_words(progress: Progress) -> str:
    """The progress in one line."""
    decided, total = progress.done + progress.failed, max(progress.total, 1)
    parts = [
        f"{decided / total:.1%}",
        f"{progress.done:,} done",
        f"{progress.failed:,} failed",
        f"{progress.in_flight:,} in flight on {counted(len(progress.servers), 'server')}",
        f"{progress.pending:,} pending",
        f"{progress.rate:,.1f}/s",
        f"{_eta(progress.eta)} left",
        f"at most {progress.possibly_repeated:,} calls repeated by a crash",
        f"{progress.counts.refused:,} answers refused",
    ]
    return " · ".join([*parts, f"PAUSED: {progress.paused_why}"] if progress.paused else parts)


def _eta(left: float | None) -> str:
    if left is None:
        return "unknown time"
    minutes, secs = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{secs:02}s"
