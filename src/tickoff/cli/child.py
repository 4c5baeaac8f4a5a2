"""The command as a process: forked before there are threads, it waits for the word and becomes the command.

Forking early is safe where forking beside the keeper's threads would not be, and lets the child itself put
everything in order before the command begins: its process group, and its end should ours be violent.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
from types import TracebackType
from typing import NoReturn, Self

VARIABLES = ("TICKOFF_JOB", "TICKOFF_TICK", "TICKOFF_FENCE")
"""What a command is told; those of a wrapper around ours are not handed on."""

_MISSING = (errno.ENOENT, errno.ENOTDIR)


class CannotRun(Exception):
    """The command did not begin: the message says why, `missing` whether there is no such command."""

    def __init__(self, program: str, number: int) -> None:
        super().__init__(f"cannot run {program}: {os.strerror(number)}")
        self.missing = number in _MISSING


class Child:
    """One command in a process group of its own; leaving it unstarted leaves nothing behind."""

    def __init__(self, command: tuple[str, ...]) -> None:
        _look_for(command[0])
        self._command = command
        self._code: int | None = None
        self.started = False
        """Whether it may have begun."""
        word, self._word = os.pipe()
        self._trouble, trouble = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._word)
            _become(command, word, trouble, parent)
        os.close(word)
        os.close(trouble)
        with contextlib.suppress(OSError):  # it may have done so itself, and even be the command by now
            os.setpgid(self.pid, self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_word()
        os.close(self._trouble)
        if self._code is None:
            self._signal(signal.SIGKILL)  # any other, just after the fork, would be taken by our own handlers
            os.waitpid(self.pid, 0)

    def start(self, variables: dict[str, str]) -> None:
        """Give the word; returns once the command runs, or raises `CannotRun`."""
        self.started = True
        with contextlib.suppress(BrokenPipeError):  # killed while it waited: its status will tell
            os.write(self._word, json.dumps(variables).encode())
        self._close_word()
        number = os.read(self._trouble, 16)
        if number:
            self.started = False
            raise CannotRun(self._command[0], int(number))

    def look(self) -> int | None:
        """The signal that stopped it, if one just did; takes in its end."""
        if self._code is not None:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        self._code = os.waitstatus_to_exitcode(status)
        return None

    @property
    def code(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        return self._code

    @property
    def gone(self) -> bool:
        """Whether it ended, and all others in its group with it."""
        return self._code is not None and not self._signal(0)

    def send(self, number: int) -> None:
        """Send a signal to it and to all it started; a stopped one is woken up to meet its end."""
        self._signal(number)
        if number == signal.SIGTERM:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> bool:
        """Whether there was anybody in the group to get it."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):  # the latter is how macOS calls a group of the dead
            return False
        return True

    def _close_word(self) -> None:
        if self._word >= 0:
            os.close(self._word)
            self._word = -1


def _look_for(program: str) -> None:
    """Refuse what cannot run before anything is won: a server that lacks the command leaves it to others."""
    places = [program] if os.sep in program else [os.path.join(p, program) for p in os.get_exec_path()]  # noqa: PTH118 - pathlib would normalise what the user wrote
    found = [place for place in places if os.path.isfile(place)]  # noqa: PTH113 - likewise
    if not any(os.access(place, os.X_OK) for place in found):
        raise CannotRun(program, errno.EACCES if found else errno.ENOENT)


def _become(command: tuple[str, ...], word: int, trouble: int, parent: int) -> NoReturn:
    """Wait for the word, then become the command; in the forked process."""
    try:
        os.setpgid(0, 0)
        variables = _awaited(word)
        if variables is None:
            os._exit(0)
        _end_with(parent)
        for one in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that would be inherited
            signal.signal(one, signal.SIG_DFL)
        os.execvpe(command[0], command, _environment(variables))  # noqa: S606 - no shell is the point
    except OSError as error:
        os.write(trouble, str(error.errno).encode())
    finally:
        os._exit(127)


def _awaited(word: int) -> dict[str, str] | None:
    """The variables that came with the word; None when there was none, as the race was lost."""
    parts = []
    while part := os.read(word, 65536):
        parts.append(part)
    return dict(json.loads(b"".join(parts))) if parts else None


def _environment(variables: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in VARIABLES} | variables


def _end_with(parent: int) -> None:
    """Let the kernel kill us when our parent dies, so that nobody works on under a lease nobody renews."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):  # a Python or a libc without it
        import ctypes

        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
