"""What clients saw, as they saw it: one file each, a line per event, good after kill -9.

    with History(folder, process="server-1") as history:
        with history.asking("race", name) as call:
            call.said(Said.OK, token=lease.token, fence=lease.fence)

A call that raises, or whose process dies, stays unknown: it may have been applied.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, Self


class Said(StrEnum):
    """What became of a call."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a client asked, or what it was answered, at a time of the machine's monotonic clock."""

    at: float
    process: str
    call: int
    verb: str
    said: Said
    name: str = ""
    token: str = ""
    fence: int = 0
    tick: int = 0
    attempt: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """A call from its begin to its end; without an answer, it lasts for ever and may have been applied."""

    begun: float
    ended: float
    line: Line

    @property
    def ok(self) -> bool:
        """Whether it was answered with yes."""
        return self.line.said is Said.OK


class Call:
    """A call under way."""

    def __init__(self, history: History, number: int, verb: str, name: str, about: dict[str, Any]) -> None:
        self._history = history
        self._number = number
        self._verb = verb
        self._name = name
        self._about = about
        self.open = True

    def said(self, said: Said, **about: Any) -> None:
        """Note the answer; the first one counts."""
        if self.open:
            self.open = said is Said.INVOKE
            self._history.note(self._verb, said, self._name, call=self._number, **self._about | about)


class History:
    """The file of one client. Threads may share it: a line is one write."""

    def __init__(self, folder: Path, process: str) -> None:
        self._process = process
        self._numbers = count(1)
        self._file = os.open(folder / f"{process}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, verb: str, said: Said, name: str, *, call: int = 0, **about: Any) -> None:
        """Write a line, at once."""
        line = Line(
            at=time.monotonic(),
            process=self._process,
            call=call or next(self._numbers),
            verb=verb,
            said=said,
            name=name,
            **about,
        )
        told = {key: value for key, value in asdict(line).items() if value not in ("", 0)}
        os.write(self._file, (json.dumps(told) + "\n").encode())

    @contextmanager
    def asking(self, verb: str, name: str, **about: Any) -> Iterator[Call]:
        """Note that something is asked; a call left without an answer is unknown."""
        call = Call(self, next(self._numbers), verb, name, about)
        call.said(Said.INVOKE)
        try:
            yield call
        finally:
            call.said(Said.UNKNOWN)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def lines_of(folder: Path) -> list[Line]:
    """All lines of all clients, in the order of time; one torn by a kill is passed over."""
    found = [line for file in folder.glob("*.jsonl") for line in _lines_in(file)]
    return sorted(found, key=lambda line: line.at)


def ops_of(lines: list[Line]) -> list[Op]:
    """The calls, in the order in which they began."""
    begun: dict[tuple[str, int], Line] = {}
    answers: dict[tuple[str, int], Line] = {}
    for line in lines:
        (begun if line.said is Said.INVOKE else answers).setdefault((line.process, line.call), line)
    ops = [_op(line, answers.get(call)) for call, line in begun.items()]
    return sorted(ops, key=lambda op: op.begun)


def _op(begin: Line, answer: Line | None) -> Op:
    if answer is None or answer.said is Said.UNKNOWN:
        return Op(begun=begin.at, ended=float("inf"), line=answer or begin)
    return Op(begun=begin.at, ended=answer.at, line=answer)


def _lines_in(file: Path) -> Iterator[Line]:
    for text in file.read_text("utf-8", errors="replace").splitlines():
        try:
            told = json.loads(text)
        except ValueError:
            continue
        yield Line(**{"call": 0, **told, "said": Said(told["said"])})
