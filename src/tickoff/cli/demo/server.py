"""One server of the demo: told on stdin what to serve, it says when it does.

Run as `python -m tickoff.cli.demo.server NUMBER SKEW`; the store is named by the environment, so that a
password shows in no list of processes. When stdin ends it lets go and exits: it outlives nobody.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager, ExitStack, closing
from types import TracebackType

from ...errors import TickoffError
from ...ground.clocks import wall
from ...ground.world import RealWorld, entered
from ..exits import report
from . import application, outside


class WrongClock(RealWorld):
    """The machine as a server sees it whose clock was set wrongly."""

    def __init__(self, skew: float) -> None:
        self._skew = round(skew * 1000)

    def wall(self) -> int:
        """The time as this server has it."""
        return super().wall() + self._skew


class Naive:
    """The same newsletter as cron would send it on each server: by the clock, asking nobody."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def _run(self) -> None:
        period = round(application.EVERY * 1000)
        while not self._over.wait((period - wall() % period) / 1000):
            outside.mail_naively()


def main() -> None:
    """Serve what is asked for, until stdin ends."""
    number, skew = sys.argv[1:]
    os.environ[outside.SERVER] = number
    try:
        with entered(WrongClock(float(skew))):
            _take_part()
    except TickoffError as error:
        sys.exit(report(error))


def _take_part() -> None:
    _say("here")
    for line in sys.stdin:
        with ExitStack() as stack:
            for service in _asked_for(line.split()):
                stack.enter_context(service)
            _say("serving")
            sys.stdin.readline()  # the act is over, or nobody is there any more
        _say("over")


def _asked_for(words: list[str]) -> list[AbstractContextManager[object]]:
    match words:
        case ["newsletter"]:
            jobs = application.newsletter()
            return [closing(jobs), jobs, Naive()]
        case ["import", name, period]:
            jobs = application.imports(name, period)
        case _:
            jobs = application.lookups()
    return [closing(jobs), jobs]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
