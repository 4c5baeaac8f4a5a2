"""What the replies of the scripts mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...model import Answer, Bid, Entry, Note, Outcome, Run, Told, Why, won_entry

_FLAGS = ("manual", "open", "paused", "scheduled")


def race_answers(bids: Sequence[Bid], reply: bytes) -> list[Answer]:
    """The time, and a line for each of the first bids, as far as the script came."""
    told, *lines = reply.split(b"\n")
    now = int(told)
    return [_race_answer(bid, line, now) for bid, line in zip(bids, lines, strict=False)]


def _race_answer(bid: Bid, line: bytes, now: int) -> Answer:
    """A win is told by its numbers, a loss, or a win during a pause, by a word, a tab, and the entry."""
    if b"\t" not in line:
        return Told(True, now, partial(_won, bid, line))
    why, _, stored = line.partition(b"\t")
    read = partial(_entry, bid.name, stored)
    return Told(True, now, read) if why == b"won" else Told(False, now, read, Why(why.decode()))


def _won(bid: Bid, line: bytes) -> Entry:
    return won_entry(bid, *map(int, line.split()))


def answers_of(names: Sequence[str], reply: bytes) -> list[Answer]:
    """The time, and a line for each name: whether it was granted, or is held, a tab, the entry."""
    told, *lines = reply.split(b"\n")
    now = int(told)
    return [_answer(name, line, now) for name, line in zip(names, lines, strict=True)]


def _answer(name: str, line: bytes, now: int) -> Answer:
    ok, _, stored = line.partition(b"\t")
    return Told(ok == b"1", now, partial(_entry, name, stored))


def answer_of(name: str, reply: list[Any]) -> Answer:
    """Whether it was granted, the time, the entry."""
    ok, now, stored = reply
    return Answer(bool(ok), _entry(name, stored), now)


def _entry(name: str, stored: bytes) -> Entry:
    values = json.loads(stored, parse_float=_whole)
    for flag in _FLAGS:
        values[flag] = bool(values.get(flag))
    return Entry(name=name, **values)


def _whole(number: str) -> int:
    """Lua has no whole numbers, and writes large ones with an exponent."""
    return int(float(number))


def run_of(name: str, line: bytes) -> Run:
    """A line of the history."""
    values = json.loads(line[16:])
    numbers = {field: int(value) for field, value in values.items() if not isinstance(value, str)}
    told = {"outcome": Outcome(values["outcome"]), "manual": bool(values.get("manual"))}
    return Run(name=name, **(values | numbers | told))


def note_of(key: bytes, kept: bytes) -> Note:
    """A note on a board."""
    until, _, text = kept.decode().partition(" ")
    return Note(key.decode(), text, int(until))
