"""Tickoff, its leases in the same database as the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.peers import gate, on_rows
from bench.peers.program import url
from tickoff import Tickoff


def one(_row: Any) -> str:
    """The same answer for each."""
    return "ok"


def many(rows: Sequence[Any]) -> list[str]:
    """The same for a list."""
    return ["ok"] * len(rows)


async def one_async(_row: Any) -> str:
    """The same on the event loop."""
    return "ok"


def fill(count: str) -> None:
    """A user's table, with our columns added."""
    on_rows.fill(count, bare=False)
    jobs = _jobs(1)
    with jobs.records("bench") as records:
        records.table.install()
    jobs.close()


def work(per_call: str, colour: str) -> None:
    """One pass: until nothing is left."""
    jobs = _jobs(int(per_call), asynchronous=colour == "async")
    with jobs.records("bench") as records:
        gate.wait()
        records.run()
    jobs.close()


def _jobs(per_call: int, *, asynchronous: bool = False) -> Tickoff:
    jobs = Tickoff(url())
    listed: dict[str, Any] = {"per_call": per_call} if per_call > 1 else {}
    of_one = one_async if asynchronous else one
    jobs.each(on_rows.TABLE, status="status", result="answer", name="bench", **listed)(
        many if per_call > 1 else of_one
    )
    return jobs
