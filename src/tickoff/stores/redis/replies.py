"""What the replies of the scripts mean."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ...model import WON_FIELDS, Answer, Bid, Entry, Note, Outcome, Run, Why, won_entry

_FLAGS = ("manual", "open", "paused", "scheduled")


def race_answer(bid: Bid, reply: bytes | list[Any]) -> Answer:
    """A win, which comes as one string, or a loss."""
    if isinstance(reply, list):
        return replace(answer_of(bid.name, [0, *reply[1:]]), why=Why(reply[0].decode()))
    now, taken, *told = map(int, reply.split())
    return Answer(True, won_entry(bid, taken, **dict(zip(WON_FIELDS, told, strict=True))), now)


def answer_of(name: str, reply: list[Any]) -> Answer:
    """Whether it was granted, the time, the entry."""
    ok, now, stored = reply
    values = json.loads(stored)
    numbers = {field: int(value) for field, value in values.items() if not isinstance(value, str)}
    flags = {flag: bool(values.get(flag)) for flag in _FLAGS}
    return Answer(bool(ok), Entry(name=name, **(values | numbers | flags)), now)


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
