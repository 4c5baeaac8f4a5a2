"""Commands under `tickoff lock` and `tickoff once`, as real processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TICKOFF = [sys.executable, "-m", "tickoff"]

IGNORES_TERM = f"""exec {sys.executable} -uc '
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid())
while True: time.sleep(0.02)'"""
"""A shell line that becomes a process that cannot be asked to end."""

FAMILY = """
import os, signal, subprocess, sys, time
code, log, number = sys.argv[1:]
first = os.environ.pop("FIRST", None)
def met(got, frame):
    with open(log, "a") as file:
        print("parent" if first else "child", signal.Signals(got).name, file=file)
    if first:
        other.wait()
    os._exit(9)
signal.signal(int(number), met)
if first:
    other = subprocess.Popen([sys.executable, "-uc", code, code, log, number])
else:
    print("ready")
while True:
    time.sleep(0.02)
"""
"""A process and its child, which note the signal they get and end with status 9."""


@contextmanager
def started(
    environment: dict[str, str], *arguments: str, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """`tickoff` with arguments, under way; ended with the block."""
    with subprocess.Popen(
        [*TICKOFF, *arguments],
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line of its output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip()[:1] not in ("", "Z")


def eventually(true: Callable[[], object], limit: float = 20.0) -> bool:
    """Whether it comes true within the limit."""
    deadline = time.monotonic() + limit
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def lines(path: Path) -> list[str]:
    """What is in a file by now."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().splitlines()
    return []


def kill(pid: int, number: int) -> None:
    """Send a signal to whoever may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def pipe() -> Iterator[int]:
    """The reading end of a pipe that nobody writes to."""
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)
