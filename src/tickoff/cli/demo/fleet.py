"""The ten servers of the demo, and what is said to all of them."""

from __future__ import annotations

import time
from pathlib import Path

from ...errors import TickoffError
from .processes import Process

SIZE = 10

_ANSWER_LIMIT = 60.0
"""Seconds a server may take to start or to answer; a store's own limit ends before."""

_SLOWEST = 10.0

_FAREWELL = 1.5
"""Seconds the servers have to let go and leave by themselves."""


def skew_of(number: int) -> float:
    """Seconds by which a server's clock is wrong: by minutes, and by another fraction of a tick for each."""
    minutes_or_so = (-24, 6, 45, -3, 0, 17, -60, 1, 30, -11)
    return 2.0 * minutes_or_so[number - 1] - 0.15 * (number + 1)


def called(number: int) -> str:
    """How a server is called in the show."""
    return f"srv-{number:02}"


class Fleet:
    """All servers, and those that are left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[int, Process] = {}
        self._began = 0.0
        self.took = 0.0
        """Seconds it took them to start, or to begin with what they were told to serve last."""

    def start(self) -> None:
        """Start every server; they come up side by side."""
        for number in range(1, SIZE + 1):
            arguments = [str(number), str(skew_of(number))]
            self._servers[number] = Process(called(number), "server", arguments, self._folder)
        self._began = time.monotonic()

    def up(self) -> None:
        """Wait until all of them are there."""
        self._hear(self.alive)
        self._measure()

    @property
    def alive(self) -> list[int]:
        """The numbers of those that are there."""
        return [number for number, server in self._servers.items() if server.alive]

    def server(self, number: int) -> Process:
        """One of them."""
        return self._servers[number]

    def with_pid(self, pid: int) -> int:
        """The number of the server that is this process."""
        for number, server in self._servers.items():
            if server.pid == pid:
                return number
        raise TickoffError(f"the process {pid} is no server of the demo")

    def serve(self, what: str) -> None:
        """Let all that are left serve something; each of them does when this returns."""
        self._began = time.monotonic()
        self._tell(what)
        self._measure()

    def rest(self) -> None:
        """Let all that are left serve nothing."""
        self._tell("over")

    def stop(self) -> None:
        """Let all leave by themselves, which frees what they hold; then make sure."""
        for server in self._servers.values():
            server.dismiss()
        deadline = time.monotonic() + _FAREWELL
        for server in self._servers.values():
            server.end(deadline)

    def _tell(self, line: str) -> None:
        numbers = self.alive
        for number in numbers:
            self._servers[number].tell(line)
        self._hear(numbers)

    def _hear(self, numbers: list[int]) -> None:
        """A line from each."""
        deadline = time.monotonic() + _ANSWER_LIMIT
        for number in numbers:
            self._servers[number].hear(deadline)

    def _measure(self) -> None:
        self.took = min(_SLOWEST, time.monotonic() - self._began)
