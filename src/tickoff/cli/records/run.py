"""`tickoff records run NAME`: one pass in this process, beside those of other servers, with a live bar."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING

import click

from ...durations import seconds
from ..exits import FAILED
from .common import app_option, json_option, name_argument, opened, say
from .watch import watching

if TYPE_CHECKING:
    from ...records.onepass import Passed

PAUSED = 3
SIGNALLED = 128
"""Plus the signal's number, as a shell says it."""


@click.command(short_help="Work one pass, until no row is left to be worked.")
@name_argument
@click.option(
    "--grace", default="30s", show_default=True, help="How long running calls may end when stopped."
)
@app_option
@json_option
@click.pass_context
def run(context: click.Context, name: str, grace: str, app: str | None, *, as_json: bool) -> None:
    """Work NAME's records in this process until no row is PENDING (backing off included) or IN_FLIGHT.

    Exits with 0 when all are DONE, 1 when some are FAILED, 3 when the job is paused.
    """
    length, stop = seconds(grace, "grace"), Stop()
    with opened(app, name) as records, stop.on_signals(), watching(records, quiet=as_json) as look:
        passed = records.run(look, grace=length, stop=stop.event)
    say(asdict(passed), _summary(name, passed), as_json=as_json)
    context.exit(SIGNALLED + stop.number if passed.interrupted else _status(passed))


class Stop:
    """TERM and INT end the pass in order; a second one ends it as such signals do."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.number = 0

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen while the block runs, and restore what was there."""
        former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def told(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, former[signal.Signals(number)])
            self.number = number
            self.event.set()

        for number in former:
            signal.signal(number, told)
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)


def _status(passed: Passed) -> int:
    if passed.paused:
        return PAUSED
    return FAILED if passed.failed else 0


def _summary(name: str, passed: Passed) -> str:
    counts = passed.counts
    did = f"this process: {counts.done} done, {counts.failed} failed, {counts.refused} answers refused"
    if passed.paused:
        return f"{name} is paused {passed.why} ({did})"
    if passed.interrupted:
        return f"{name}: stopped before the end ({did})"
    return f"{name}: nothing is left, {passed.failed} FAILED ({did})"
