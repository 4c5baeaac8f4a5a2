"""Instants, durations and servers in the words people read."""

from __future__ import annotations

from datetime import datetime

from ..model import moment

_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def clock(at: datetime) -> str:
    """A day and a time, by the clock of its zone, which is named."""
    return f"{at:%a %Y-%m-%d} {time_of_day(at)}"


def time_of_day(at: datetime) -> str:
    """The time alone, with its zone."""
    fraction = f".{at.microsecond // 1000:03}" if at.microsecond else ""
    return f"{at:%H:%M:%S}{fraction} {at:%Z}"


def here(instant: int) -> datetime:
    """A stored instant by the clocks of this machine's zone, to the second."""
    return moment(instant).astimezone().replace(microsecond=0)


def length(ms: int) -> str:
    """How long, in its two largest units."""
    seconds = ms // 1000
    if seconds == 0:
        return f"{ms} ms"
    parts = []
    for unit, size in _UNITS.items():
        number, seconds = divmod(seconds, size)
        parts.append(counted(number, unit) if number else "")
    first = next(place for place, part in enumerate(parts) if part)
    return " ".join(part for part in parts[first : first + 2] if part)


def counted(number: int, noun: str) -> str:
    """A number and its noun, such as "1 server" or "2 servers"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def server(owner: str) -> str:
    """An owner without the nonce: the machine, and the process on it."""
    host, _, rest = owner.partition(":")
    return f"{host} (pid {rest.partition(':')[0]})" if rest else host or "a program other than Tickoff"
