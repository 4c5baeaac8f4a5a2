"""Act 4: 2,000 rows through a slow, flaky API; a server dies with rows in its hands."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from ....records.operator import Records
from ....records.progress import Progress
from .. import application
from ..fleet import called
from ..show import Show, Tone
from ..stage import Stage

ROWS = 2_000
_KILL_AT = 0.25


def rows(stage: Stage, show: Show) -> None:
    """Work them all, and kill a server when a quarter is done."""
    show.act(4, f"{ROWS:,} rows through a slow and flaky API")
    _stock(stage)
    jobs = application.lookups()
    try:
        with jobs.records(application.LOOK_UP) as records:
            records.table.install()
            stage.fleet.do("look-up")
            _work(stage, show, records)
            stage.fleet.do("over")
    finally:
        jobs.close()


def _work(stage: Stage, show: Show, records: Records) -> None:
    look = _looking(show, records)
    stage.until(lambda: look().done >= ROWS * _KILL_AT or None, "the rows are not worked", _nothing)
    owner = _kill_one(stage, show, records)
    stage.until(
        lambda: (look() and not _held(records, owner)) or None,
        "the dead server's rows were not swept",
        _nothing,
    )
    show.say("swept: its rows are PENDING again, for the others", Tone.GOOD)
    stage.until(lambda: not _left(look()) or None, "the rows were not finished", _nothing)


def _kill_one(stage: Stage, show: Show, records: Records) -> str:
    """Kill the server with the most rows in flight; its name as an owner of claims."""
    holding = max(records.table.holdings(), key=lambda holding: holding.records)
    number = stage.fleet.with_pid(int(holding.owner.rsplit(":", 2)[1]))
    stage.fleet.server(number).kill()
    flying = _held(records, holding.owner)
    show.say(f"kill -9 {called(number)}, with claims on {flying} rows", Tone.BAD)
    return holding.owner


def _held(records: Records, owner: str) -> int:
    return sum(holding.records for holding in records.table.holdings() if holding.owner == owner)


def _left(progress: Progress) -> int:
    return progress.pending + progress.in_flight


def _looking(show: Show, records: Records) -> Callable[[], Progress]:
    """Look how far the fleet is, and show it."""

    def look() -> Progress:
        progress = records.progress()
        show.rows(progress.done + progress.failed, progress.total, progress.rate, progress.eta)
        return progress

    return look


def _stock(stage: Stage) -> None:
    phones = [{"phone": f"+91{90_000_000 + 7 * number:010}"} for number in range(ROWS)]
    with stage.engine.begin() as connection:
        connection.execute(sa.insert(application.contacts()), phones)


def _nothing() -> None:
    """The look itself shows how far it is."""
