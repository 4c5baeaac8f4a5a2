"""The show from the beginning to the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from ..interrupts import ending_tidily
from . import application
from .acts.doubled import doubled
from .acts.killed import killed
from .acts.rows import ROWS, rows
from .acts.stopped import stopped
from .fleet import SIZE
from .show import Show, Tone
from .stage import Missed, Stage, set_up
from .verdict import Contact, Import, Verdict

_ACTS = (doubled, killed, stopped, rows)

YOUR_OWN = (
    "from tickoff import Tickoff",
    'jobs = Tickoff("sqlite:///tickoff.db")  # or redis://, postgresql://, mysql://',
    'jobs.run_with_lock("hello", lambda: print("one server at a time"), ttl="60s")',
)


def play(url: str | None, namespace: str | None, show: Show) -> Verdict:
    """Play all acts on the given store, or on SQLite files that are gone afterwards."""
    with ending_tidily():
        with set_up(url, namespace) as stage, show:
            _welcome(stage, show, stage.jobs.store.address if url else "a temporary SQLite file")
            verdict = _judged(stage, _acts(stage, show))
        _tell(verdict, show)
    return verdict


def _welcome(stage: Stage, show: Show, where: str) -> None:
    show.say(f"{SIZE} servers, each a process of its own, on {where}", Tone.TITLE)
    show.now("they start")
    stage.fleet.up()


def _acts(stage: Stage, show: Show) -> str:
    """Play until something does not happen that had to, or happens twice; what it was, or nothing."""
    for number, act in enumerate(_ACTS, 1):
        try:
            act(stage, show)
        except Missed as missed:
            return str(missed)
        if _ticked(stage).duplicates:
            return f"the show ended with act {number}"
    return ""


def _judged(stage: Stage, missed: str) -> Verdict:
    """The log and the database, read when all is over."""
    verdict = replace(_ticked(stage), missed=missed)
    if missed:
        return verdict
    return replace(
        verdict, contacts=[Contact(row.phone, row.state, row.number) for row in stage.select(_worked())]
    )


def _ticked(stage: Stage) -> Verdict:
    """The same without the rows."""
    lines = application.imported()
    imports = sa.select(lines.c.job, lines.c.tick, lines.c.fence)
    return Verdict(
        seen=stage.journal.all(),
        imports=[Import(line.job, line.tick, line.fence) for line in stage.select(imports)],
        rows=ROWS,
        period=round(application.EVERY * 1000),
    )


def _worked() -> sa.Select[Any]:
    table = application.contacts()
    return sa.select(table.c.phone, sa.column("state"), table.c.number).select_from(table)


def _tell(verdict: Verdict, show: Show) -> None:
    show.act(5, "The verdict, from the log of the world outside and the database")
    for name, text in _counted(verdict):
        show.say(f"{name:13} {text}")
    if verdict.held:
        show.say("It held: every tick once, every row once.", Tone.HELD)
    else:
        show.say("IT DID NOT HOLD: please report this, with the store and its version:", Tone.BROKEN)
        for fault in verdict.faults:
            show.say(fault, Tone.BROKEN)
    show.act(6, "Your own, in Python")
    show.quote(YOUR_OWN)


def _counted(verdict: Verdict) -> list[tuple[str, str]]:
    states = verdict.states
    done, failed = states.get("DONE", 0), states.get("FAILED", 0)
    return [
        ("by the clock", f"up to {verdict.naive} emails a tick"),
        (
            "with Tickoff",
            f"{verdict.ticks} ticks were due, {verdict.runs} runs, duplicates {verdict.duplicates}",
        ),
        ("late writes", f"{verdict.refused} refused"),
        (
            "rows",
            f"{len(verdict.contacts):,} = {done:,} done + {failed} failed, wrong answers {verdict.wrong}",
        ),
        ("calls", f"{verdict.calls:,}: {verdict.put_off} put off by the API, {verdict.repeated} repeated"),
    ]
