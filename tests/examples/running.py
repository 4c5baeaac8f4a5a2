"""Programs as processes: started with an environment of their own, heard through a file, ended by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0

T = TypeVar("T")


class Program:
    """A process, and what it has said so far."""

    def __init__(self, command: list[str], log: Path, folder: Path, environment: dict[str, str]) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("TICKOFF_")}
        self._log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env=clean | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )

    @property
    def said(self) -> str:
        """All it has written."""
        return self._log.read_text("utf-8", errors="replace")

    def ended(self, limit: float = PATIENCE) -> int:
        """Its status, once it has ended by itself."""
        return self.process.wait(limit)

    def terminate(self) -> int:
        """Tell it to stop, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Stage:
    """Where a test starts its programs; they end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.programs: list[Program] = []

    def start(self, *command: str, cwd: Path | None = None) -> Program:
        """Start a Python program."""
        log = self.folder / f"{len(self.programs)}.log"
        program = Program(list(command), log, cwd or self.folder, self.environment)
        self.programs.append(program)
        return program

    def hurried(self, period: str, module: str, *command: str) -> Program:
        """Start an example with its jobs in a hurry."""
        return self.start("-m", "tests.examples.hurried", period, module, *command)

    def run(self, *command: str, cwd: Path | None = None) -> Program:
        """Start one and wait for its end."""
        program = self.start(*command, cwd=cwd)
        program.ended()
        return program

    def everything_said(self) -> str:
        """By all programs."""
        return "\n".join(program.said for program in self.programs)


@contextmanager
def stage_in(folder: Path) -> Iterator[Stage]:
    """A stage that is cleared at the end."""
    stage = Stage(folder)
    with ExitStack() as ends:
        yield stage
        for program in stage.programs:
            ends.callback(program.close)


def eventually(fact: Callable[[], T], stage: Stage, limit: float = PATIENCE) -> T:
    """Wait until it is so; what it was then. If it never is, all that was said is shown."""
    deadline = time.monotonic() + limit
    while not (found := fact()):
        assert time.monotonic() < deadline, f"it did not come to pass:\n{stage.everything_said()}"
        time.sleep(0.1)
    return found
