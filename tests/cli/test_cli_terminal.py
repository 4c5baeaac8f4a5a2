"""`tickoff lock` at a terminal: an interactive shell, a command that reads, Ctrl-C and Ctrl-Z."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cli.wrapped import TICKOFF
from tickoff import Tickoff

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")

CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            quiet = {"PS1": "", "PS2": "", "TERM": "dumb", "HISTFILE": "/dev/null"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**environment, **quiet})
        self._came = b""

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._terminal, keys)

    def run(self, *command: str) -> None:
        """Type a command."""
        self.type(" ".join(command).encode() + b"\n")

    def awaits(self, text: str, limit: float = 30.0) -> str:
        """Read on until the text is on the screen; what came up to it."""
        deadline = time.monotonic() + limit
        while text.encode() not in self._came:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"waited for {text!r}, saw {self._came!r}"
            self._came += os.read(self._terminal, 4096)
        before, _, self._came = self._came.partition(text.encode())
        return before.decode()

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(environment: dict[str, str]) -> Iterator[Shell]:
    """A shell, hung up after the test."""
    made = Shell(environment)
    yield made
    made.close()


@pytest.fixture
def lock(redis, name: str) -> list[str]:
    """The words before the command."""
    return [*TICKOFF, "lock", name, "--url", redis.url, "--"]


def python(code: str) -> list[str]:
    """A command of one line of Python, as a shell wants it."""
    return [sys.executable, "-uc", f"'{code}'"]


COUNTS_INTERRUPTS = (
    "import signal, sys, time; "
    'signal.signal(signal.SIGINT, lambda *_: print("met " + "it")); '
    'print("be" + "gun"); '
    "[time.sleep(0.1) for _ in range(15)]; "
    "sys.exit(5)"
)


def test_a_command_can_read_from_the_terminal(shell, lock):
    """It is in the foreground, though in a group of its own."""
    shell.run(*lock, *python('print("you said " + input("say? "))'), "; echo status-$?")
    shell.awaits("say? ")
    shell.type(b"hello\n")
    shell.awaits("you said hello")
    shell.awaits("status-0")


def test_ctrl_c_reaches_the_command_once(shell, lock):
    """The terminal sends it to the foreground group, and we do not send it again."""
    shell.run(*lock, *python(COUNTS_INTERRUPTS), "; echo status-$?")
    shell.awaits("begun")
    shell.type(CTRL_C)
    assert shell.awaits("status-5").count("met it") == 1


def test_ctrl_c_ends_a_command_and_a_script_around_it(shell, lock):
    """What runs behind us in the same script does not go on, as if the command had been run bare."""
    script = f"\"{' '.join(lock)} sh -c 'echo be''gun; sleep 60'; echo went-\\$((1+1))\""
    shell.run("sh", "-c", script)
    shell.awaits("begun")
    shell.type(CTRL_C)
    shell.run("echo next-$((1+1))")
    assert "went-2" not in shell.awaits("next-2")


def test_ctrl_z_gives_the_prompt_back_and_fg_goes_on(shell, lock, redis, name):
    """The stopped command keeps its lock as long as the TTL lasts."""
    shell.run(*lock, *python('print("be" + "gun"); print("read " + input())'), "; echo status-$?")
    shell.awaits("begun")
    shell.type(CTRL_Z)
    shell.awaits("Stopped")
    jobs = Tickoff(redis.url)
    assert not jobs.race(name)
    jobs.close()
    shell.run("echo the-$((1+1))-prompt")
    shell.awaits("the-2-prompt")
    shell.run("fg")
    shell.awaits("-m tickoff lock")  # the shell says what it continues
    shell.type(b"line\n")
    shell.awaits("read line")


def test_a_command_in_a_pipe_leaves_the_terminal_to_the_pager_until_it_asks(shell, lock):
    """What follows in the pipe can read keys; the command can, too, once it does."""
    pager = python('print("pager read " + open("/dev/tty").readline())')
    shell.run(*lock, "sh", "-c", "'echo begun >&2; sleep 60'", "|", *pager)
    shell.awaits("begun")
    shell.type(b"key\n")
    shell.awaits("pager read key")
    shell.type(CTRL_C)
    shell.run("echo next-$((1+1))")
    shell.awaits("next-2")
    shell.run(*lock, *python('print("as" + "ks"); print("command read " + input())'), "| cat; echo status-$?")
    shell.awaits("asks")
    shell.type(b"line\n")
    shell.awaits("command read line")
    shell.awaits("status-0")
