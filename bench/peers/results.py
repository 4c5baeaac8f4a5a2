"""Turns of a group, and what they say: rates, and ratios between neighbours in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median

import psycopg

from bench.page import Gate
from bench.peers.groups import Aim, Entry, Group
from bench.peers.watching import rate

Results = dict[str, list[float]]
"""Records a second by label, one figure a round."""


def measured(group: Group, urls: Mapping[str, str], rounds: int) -> Results:
    """All in every round, each round beginning with another one."""
    found: Results = {entry.label: [] for entry in group.entries}
    for turn in range(rounds):
        start = turn * len(group.entries) // rounds
        for entry in (*group.entries[start:], *group.entries[:start]):
            found[entry.label].append(_rate(entry, urls))
            print(f"  {found[entry.label][-1]:12,.0f}  {entry.label}", flush=True)
    return found


def _rate(entry: Entry, urls: Mapping[str, str]) -> float:
    url = urls[entry.peer.broker]
    with _snapshot(url) if entry.held else _nothing():
        return rate(entry.peer, url, entry.processes, upto=entry.upto)


@contextmanager
def _snapshot(url: str) -> Iterator[None]:
    """A transaction of somebody else's: no dead row version younger than it can be cleaned away."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def as_table(group: Group, results: Results) -> str:
    """The figures as a table."""
    lines = ["| | settings | records/s | lowest to highest | beside " + ", ".join(group.beside) + " |"]
    lines += ["|---|---|---|---|---|", *(_row(group, entry, results) for entry in group.entries)]
    return "\n".join(lines)


def _row(group: Group, entry: Entry, results: Results) -> str:
    rates = results[entry.label]
    others = [f"{label}, {entry.under}" if entry.under else label for label in group.beside]
    ratios = ", ".join(f"{_ratio(results, entry.label, other):.2f}" for other in others)
    spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
    return f"| {entry.label} | {entry.peer.settings} | {median(rates):,.0f} | {spread} | {ratios} |"


def gates_of(group: Group, results: Results) -> list[Gate]:
    """What was aimed at, and what came of it."""
    return [_gate(group, aim, results) for aim in group.aims]


def _gate(group: Group, aim: Aim, results: Results) -> Gate:
    ratio = _ratio(results, aim.of, aim.to)
    name = f"Records, {group.title}: {aim.of}, beside {aim.to}"
    return Gate(name, f"rate ≥ {aim.at_least:g} times", f"{ratio:.2f} times", ratio >= aim.at_least)


def _ratio(results: Results, of: str, to: str) -> float:
    return median(ours / theirs for ours, theirs in zip(results[of], results[to], strict=True))
