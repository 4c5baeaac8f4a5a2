"""Signals at any moment must leave neither a process nor a file: some moments must not be torn apart."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_tidily() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, where they would end the process at once."""
    harsh = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for one in harsh:
        signal.signal(one, _leave)
    try:
        yield
    finally:
        for one in harsh:
            signal.signal(one, signal.SIG_DFL)


@contextmanager
def held_back() -> Iterator[None]:
    """Take signals that end the process only after the body: it starts or ends something as a whole."""
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _frame: came.append(number)) for one in _ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if came:
            signal.raise_signal(came[0])


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
