"""What a process of the fleet runs: `tickoff serve`, with a few jobs that write what they do into one log."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.actor import skew_clock
from tests.planted import apply_from_environment
from tests.processes import forked
from tickoff import Tickoff
from tickoff.cli import program
from tickoff.ground.clocks import elapsed
from tickoff.ticks.tick import Tick

TTL = 1.5
"""Seconds the leases of the jobs last that kill their servers."""


@dataclass(frozen=True)
class Line:
    """A run that began, as the job itself wrote it down: no store had a hand in this."""

    job: str
    tick: float
    pid: int
    attempt: int
    at: float


def write(log: Path, tick: Tick) -> None:
    """Append a line, in one step of the file system."""
    words = (tick.job.rpartition(":")[2], tick.at.timestamp(), os.getpid(), tick.attempt, elapsed())
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (" ".join(map(str, words)) + "\n").encode())
    os.close(file)


def lines(log: Path, job: str) -> list[Line]:
    """What a job wrote."""
    if not log.exists():
        return []
    words = [line.split() for line in log.read_text("utf-8").splitlines()]
    found = [Line(w[0], float(w[1]), int(w[2]), int(w[3]), float(w[4])) for w in words]
    return [line for line in found if line.job == job]


def beat(jobs: Tickoff, log: Path) -> None:
    """A tick every second, and next to nothing to do."""

    @jobs.every("1s", ttl="10s")
    def beat(tick: Tick) -> None:
        write(log, tick)
        time.sleep(0.001)


def crash(jobs: Tickoff, log: Path) -> None:
    """Jobs that kill the server they run on: once, once to be recovered, and always."""

    @jobs.every("3s", name="next", ttl=TTL)
    def next_(tick: Tick) -> None:
        write(log, tick)
        die_if_first(log, "next")

    @jobs.every("31d", ttl=TTL, recover="now", catch_up="latest")
    def now(tick: Tick) -> None:
        write(log, tick)
        die_if_first(log, "now")

    @jobs.every("31d", ttl=TTL, recover="now", attempts=3, catch_up="latest")
    def poison(tick: Tick) -> None:
        write(log, tick)
        os.kill(os.getpid(), signal.SIGKILL)


def die_if_first(log: Path, name: str) -> None:
    """Kill this process, unless another one was killed by this already."""
    try:
        log.with_name(f"{name}-killed").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


SCENARIOS: dict[str, Callable[[Tickoff, Path], None]] = {"beat": beat, "crash": crash}


application: Tickoff
"""Of this process, where `tickoff serve` finds it."""


def serve(url: str, namespace: str, log: Path, scenario: str, skew: float, slots: int) -> None:
    """Be a server, with a wrong clock, until SIGTERM."""
    global application
    skew_clock(skew)
    apply_from_environment()
    application = Tickoff(url, namespace=namespace, slots=slots, grace="2s")
    SCENARIOS[scenario](application, log)
    sys.exit(program.main(["serve", "--app", f"{__name__}:application"], standalone_mode=False))


class Fleet:
    """Server processes that were started together, and end with the block."""

    def __init__(
        self, url: str, namespace: str, log: Path, scenario: str, skews: list[float], *, slots: int = 8
    ) -> None:
        context = forked()
        self.servers: list[ForkServerProcess] = [
            context.Process(target=serve, args=(url, namespace, log, scenario, skew, slots), daemon=True)
            for skew in skews
        ]

    def __enter__(self) -> Fleet:
        for server in self.servers:
            server.start()
        return self

    def stop(self) -> list[int | None]:
        """Send SIGTERM to all; their exit codes."""
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.join(20)
        return [server.exitcode for server in self.servers]

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.kill()
            server.join(10)


def wait_until(condition: Callable[[], object], limit: float = 40.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False
