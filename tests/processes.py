"""Real processes for the tests: started together, talked to by pipes, stopped and killed by pid."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

_PRELOADED = ["tests.racing", "tests.fencing", "tests.fleet.server", "redis", "psycopg", "pymysql"]


def forked() -> ForkServerContext:
    """Makes processes that start at once: forked from one that has imported all they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class Actor:
    """A server of the fleet in a process of its own: it does what it is told, line by line, and answers."""

    def __init__(self, url: str, skew: float = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.actor", url, str(skew)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, verb: str, **arguments: Any) -> None:
        """Tell it what to do, without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([verb, arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The answer to what it was told last."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the actor died with status {self.process.wait()}"
        return json.loads(line)

    def do(self, verb: str, **arguments: Any) -> Any:
        """Tell it what to do and wait for the answer."""
        self.begin(verb, **arguments)
        return self.answer()

    def freeze(self) -> None:
        """Stop it where it stands."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it, however it is."""
        with contextlib.suppress(ProcessLookupError):
            self.thaw()
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def actors(url: str, count: int, skew: float = 0) -> Iterator[list[Actor]]:
    """Some actors on one store, whose clocks are wrong by `skew` seconds."""
    cast: list[Actor] = []
    try:
        cast.extend(Actor(url, skew) for _ in range(count))
        yield cast
    finally:
        for actor in cast:
            actor.close()
