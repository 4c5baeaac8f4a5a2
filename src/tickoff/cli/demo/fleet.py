"""The processes of the demo: started together, spoken to in lines, ended together."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, cast

from ...errors import StoreUnreachable, TickoffError
from ..exits import UNREACHABLE

_ANSWER_LIMIT = 30.0
"""Seconds a server may take to start or to answer; a store's own limit ends before."""

_FAREWELL = 1.0
"""Seconds the servers have to let go and leave by themselves."""


class Server:
    """One process, and the two pipes to it."""

    def __init__(self, number: int, name: str, folder: Path, environment: dict[str, str]) -> None:
        self.number = number
        self._said = folder / f"server-{number}.err"
        log = folder / f"server-{number}.log"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-m", "tickoff.cli.demo.racer", str(number), name, str(log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                text=True,
                bufsize=1,
                process_group=0,  # a Ctrl-C is for the demo alone, which then ends its servers
            )
        self._to = cast("IO[str]", self._process.stdin)
        self._from = cast("IO[str]", self._process.stdout)

    def tell(self, line: str) -> None:
        """Send a line."""
        with contextlib.suppress(BrokenPipeError):  # its absence is noticed when it should answer
            self._to.write(f"{line}\n")

    def hear(self, deadline: float) -> str:
        """Wait for its line."""
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([self._from], [], [], left)
        line = self._from.readline() if ready else ""
        if not line:
            raise self._gone() if ready else TickoffError(f"server {self.number} of the demo does not answer")
        return line

    def dismiss(self) -> None:
        """End its input, which ends it."""
        with contextlib.suppress(BrokenPipeError):
            self._to.close()

    def end(self, deadline: float) -> None:
        """See it gone, by force after the deadline."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._from.close()

    def _gone(self) -> TickoffError:
        """Why it left, in its own last words."""
        status = self._process.wait()
        said = self._said.read_text(errors="replace").strip().splitlines() or [f"it exited with {status}"]
        kind = StoreUnreachable if status == UNREACHABLE else TickoffError
        return kind(f"server {self.number} of the demo left: {said[-1].removeprefix('tickoff: ')}")


class Fleet:
    """All servers of the demo."""

    def __init__(self, size: int, name: str, folder: Path, url: str, namespace: str | None) -> None:
        self._size = size
        self._name = name
        self._folder = folder
        self._environment = _environment(url, namespace)
        self._servers: list[Server] = []

    def start(self) -> None:
        """Start every server; they come up side by side."""
        for number in range(1, self._size + 1):
            self._servers.append(Server(number, self._name, self._folder, self._environment))

    def tell(self, line: str) -> None:
        """Send a line to all."""
        for server in self._servers:
            server.tell(line)

    def hear(self) -> list[str]:
        """A line from each."""
        deadline = time.monotonic() + _ANSWER_LIMIT
        return [server.hear(deadline) for server in self._servers]

    def stop(self) -> None:
        """Let all leave by themselves, which frees what they hold; then make sure."""
        for server in self._servers:
            server.dismiss()
        deadline = time.monotonic() + _FAREWELL
        for server in self._servers:
            server.end(deadline)


def _environment(url: str, namespace: str | None) -> dict[str, str]:
    """Ours, with the store named in it, and the same places to import from as we have."""
    named = {"TICKOFF_URL": url, "TICKOFF_NAMESPACE": namespace or ""}
    return {**os.environ, **named, "PYTHONPATH": os.pathsep.join(sys.path)}
