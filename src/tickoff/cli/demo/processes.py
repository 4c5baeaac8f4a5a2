"""A process of the demo: started as a whole, spoken to in lines, stopped, killed, and always ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, cast

from ...errors import StoreUnreachable, TickoffError
from ..exits import UNREACHABLE


class Process:
    """One process of ours, and the two pipes to it; when its input ends, it ends."""

    def __init__(self, title: str, module: str, arguments: list[str], folder: Path) -> None:
        self.title = title
        self._said = folder / f"{title}.err"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-m", f"tickoff.cli.demo.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=_environment(),
                cwd=folder,
                text=True,
                bufsize=1,
                process_group=0,  # a Ctrl-C is for the demo alone, which then ends its processes
            )
        self._to = cast("IO[str]", self._process.stdin)
        self._from = cast("IO[str]", self._process.stdout)

    @property
    def pid(self) -> int:
        """Its number on this machine."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it is there, be it stopped."""
        return self._process.poll() is None

    def kill(self) -> None:
        """`kill -9`: it cannot say goodbye to anybody."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it where it is, as a suspended machine or a long pause would."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on as if nothing had happened."""
        self._process.send_signal(signal.SIGCONT)

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
            raise self._gone() if ready else TickoffError(f"{self.title} of the demo does not answer")
        return line.strip()

    def dismiss(self) -> None:
        """End its input, which ends it, unless it is stopped."""
        with contextlib.suppress(BrokenPipeError):
            self._to.close()

    def end(self, deadline: float) -> None:
        """See it gone, by force after the deadline."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
        self._from.close()

    def _gone(self) -> TickoffError:
        """Why it left, in its own last words."""
        status = self._process.wait()
        said = self._said.read_text(errors="replace").strip().splitlines() or [f"it exited with {status}"]
        kind = StoreUnreachable if status == UNREACHABLE else TickoffError
        return kind(f"{self.title} of the demo left: {said[-1].removeprefix('tickoff: ')}")


def _environment() -> dict[str, str]:
    """Ours, and the same places to import from as we have."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
