"""Act 4: 2,000 rows through a slow, flaky API; a server dies with rows in its hands."""

from __future__ import annotations

import time

import sqlalchemy as sa

from ....records.operator import Records
from ....tables.base import State
from .. import application
from ..fleet import called
from ..show import Show, Tone
from ..stage import Stage

ROWS = 2_000
_KILL_AT = 0.25
_LOOK = 0.2


def rows(stage: Stage, show: Show) -> None:
    """Work them all, and kill a server when a quarter is done."""
    show.act(4, f"{ROWS:,} rows through a slow and flaky API")
    _stock(stage)
    jobs = application.lookups()
    try:
        with jobs.records(application.LOOK_UP) as records:
            records.table.install()
            stage.fleet.serve("look-up")
            _work(stage, show, records)
            stage.fleet.rest()
    finally:
        jobs.close()


def _work(stage: Stage, show: Show, records: Records) -> None:
    seen = Looking(show, records)
    stage.until(lambda: seen.decided >= ROWS * _KILL_AT or None, "the rows were not worked", seen.look)
    owner = _kill_one(stage, show, records)
    stage.until(lambda: not _held(records, owner) or None, "a dead server's rows were not swept", seen.look)
    show.say("swept: its rows are PENDING again, for the others", Tone.GOOD)
    stage.until(lambda: seen.decided == ROWS or None, "the rows were not finished", seen.look)


def _kill_one(stage: Stage, show: Show, records: Records) -> str:
    """Kill the server with the most rows in flight; its name as an owner of claims."""
    holding = max(records.table.holdings(), key=lambda holding: holding.records)
    number = stage.fleet.with_pid(int(holding.owner.rsplit(":", 2)[1]))
    stage.fleet.server(number).kill()
    show.say(f"kill -9 {called(number)}: it had claims on {_held(records, holding.owner)} rows", Tone.BAD)
    return holding.owner


def _held(records: Records, owner: str) -> int:
    return sum(holding.records for holding in records.table.holdings() if holding.owner == owner)


class Looking:
    """Looks how far the table is, and how fast the fleet says it is."""

    def __init__(self, show: Show, records: Records) -> None:
        self._show = show
        self._records = records
        self.decided = 0

    def look(self) -> None:
        """Look, show, and leave the database alone for a moment."""
        counts = self._records.table.counts()
        self.decided = counts.get(State.DONE, 0) + counts.get(State.FAILED, 0)
        rate = sum(report.rate for report in self._records.servers())
        self._show.rows(self.decided, ROWS, rate)
        time.sleep(_LOOK)


def _stock(stage: Stage) -> None:
    phones = [{"phone": f"+91{90_000_000 + 7 * number:010}"} for number in range(ROWS)]
    with stage.engine.begin() as connection:
        connection.execute(sa.insert(application.contacts()), phones)
