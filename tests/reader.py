"""A reader of the documentation: types its commands into one shell, and compares what is printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.pages import Block, Command, commands_of, prints, replaced

INSTALLING = ("python3 -m venv", ". .venv/bin", "pip install")
"""What is done already where the tests run."""


class Shell:
    """One bash, as a reader has it: jobs stay in the background, variables stay set."""

    def __init__(self, folder: Path) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("TICKOFF_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=clean | {"PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, line: str) -> list[str]:
        """The lines a command prints, on both streams."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\necho; echo THE-END\n")
        self.process.stdin.flush()
        said = []
        while (heard := self.process.stdout.readline()) not in ("THE-END\n", ""):
            said.append(heard.rstrip("\n"))
        return said[:-1] if said[-1] == "" else said

    def close(self) -> None:
        """End it, and whatever it started: they are a session of their own."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def shell_in(folder: Path) -> Iterator[Shell]:
    """A shell that ends with the block, and whatever it started with it."""
    shell = Shell(folder)
    try:
        yield shell
    finally:
        shell.close()


def follow(page: Path, block: Block, shell: Shell, urls: dict[str, str]) -> None:
    """Type the commands of a block; each must print what the page says."""
    for command in commands_of(block):
        if command.line.startswith(INSTALLING):
            continue
        said = heard(shell.type(replaced(command.line, urls)), urls)
        assert expected(command, said), told(page, block, command, said)


def heard(said: list[str], urls: dict[str, str]) -> list[str]:
    """What was said, with the page's URLs; without what bash says of jobs that end."""
    back = {real: url for url, real in urls.items()}
    lines = [replaced(line, back) for line in said]
    return [line for line in lines if not re.match(r"bash: line \d+: +\d+ (Terminated|Killed)", line)]


def expected(command: Command, said: list[str]) -> bool:
    """Whether it prints what the page says; where the page shows nothing, there must be no error."""
    if command.output:
        return prints(said, command.output)
    return not any("error" in line.lower() or line.startswith("tickoff: ") for line in said)


def told(page: Path, block: Block, command: Command, said: list[str]) -> str:
    """Where the page is wrong, and what it should say."""
    return "\n".join([f"{page.name}:{block.line}: $ {command.line}", *said])
