"""A program that serves one job; the tests send it signals. Says on stdout what happens."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from multiprocessing import get_context

from tickoff import Tickoff
from tickoff.ticks.tick import Tick

jobs = Tickoff(sys.argv[1], grace=sys.argv[3])


def say(*words: object) -> None:
    """Say it at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def sync_short(tick: Tick) -> None:
    """Ends within the grace."""
    say("begun")
    time.sleep(1.0)
    say("ended")


def sync_long(tick: Tick) -> None:
    """Goes on until it is told to stop."""
    say("begun")
    while not tick.lost:
        time.sleep(0.02)
    say("told")
    time.sleep(60)


async def async_long() -> None:
    """Goes on until it is cancelled."""
    say("begun")
    try:
        await asyncio.sleep(60)
    finally:
        say("cleaned up")


def forks(tick: Tick) -> None:
    """Has a child process, which is to end by SIGTERM as any other."""
    child = get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    time.sleep(0.2)
    child.terminate()
    child.join(10)
    say("begun", child.exitcode)
    tick.check()


if __name__ == "__main__":
    jobs.every("1d", catch_up="latest", name="job")(globals()[sys.argv[2]])
    say("serving")
    jobs.serve()
    say("over")
