"""One server of the demo: told on stdin when to race, it answers on stdout and keeps a log of its own.

Run as `python -m tickoff.cli.demo.racer NUMBER NAME LOG`; the store is named by TICKOFF_URL, so that a
password shows in no list of processes. When stdin ends it lets go and exits: it outlives nobody.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from ...app import Tickoff
from ...errors import TickoffError
from ...lease import Lease
from ..exits import report
from .verdict import Turn

_TTL = "30s"


def main() -> None:
    """Take part until stdin ends."""
    number, name, path = sys.argv[1:]
    try:
        with open(path, "a", encoding="utf-8", buffering=1) as log:  # noqa: PTH123 - one line, one write
            _take_part(int(number), name, log)
    except TickoffError as error:
        sys.exit(report(error))


def _take_part(number: int, name: str, log: TextIO) -> None:
    jobs = Tickoff()
    jobs.store.read([name])  # connect now, so that the first race is no slower than the others
    _say("ready")
    for line in sys.stdin:
        turn, start = line.split()
        _sleep_until(float(start))
        _race(jobs, name, Turn(round=int(turn), server=number, pid=os.getpid()), log)


def _race(jobs: Tickoff, name: str, turn: Turn, log: TextIO) -> None:
    asked = time.monotonic()
    verdict = jobs.race(name, ttl=_TTL)
    lease = verdict if isinstance(verdict, Lease) else None
    turn = turn.ended(won=lease is not None, fence=lease.fence if lease else 0, asked=asked)
    log.write(f"{turn.line()}\n")
    _say(turn.line())
    sys.stdin.readline()  # the round is over, or nobody is there any more
    if lease:
        lease.release()
    _say("done")


def _sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.monotonic()))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
