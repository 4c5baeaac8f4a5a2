"""CPU time: on a machine that others use as well it says more of a program's cost than the clock does."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def own() -> float:
    """Seconds of this process, all threads."""
    spent = os.times()
    return spent.user + spent.system


def of_server(pid: int) -> float:
    """Seconds of a server's process, of its children, and of those that have ended; Linux only."""
    return (_spent(pid, 4) + sum(_spent(child, 2) for child in _children(pid))) / _TICKS


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def _spent(pid: int, fields: int) -> int:
    """Ticks in user and system mode, and then those of its ended children; none of what has ended."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, told.rpartition(")")[2].split()[11 : 11 + fields]))
