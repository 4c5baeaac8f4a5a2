"""What lets a pass go on for hours: nothing is kept of what was done, and no claim walks over it again.

`bench/records.py` measures both over millions of rows; these are the short forms.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.records.scripted import Scripted, batch
from tests.records.shop import Shop, eventually
from tickoff import Tickoff
from tickoff.ground.clocks import elapsed
from tickoff.names import new_token
from tickoff.records.floor import Floor
from tickoff.tables.base import Batch, Done, Key

ROWS = 6_000
CLAIM = 100
TOUCHES = 16
"""So often a row may be read: claimed, answered, and what an engine looks at besides; it is 3 to 7 times, and
32 times where each claim begins at the start of the table."""


class Endless(Scripted):
    """A table that has always more, and keeps no verdicts."""

    def __init__(self) -> None:
        super().__init__()
        self.next = 0
        self.settled = Forgetful()

    def claim(self, token: str, _owner: str, limit: int, _ttl: float, _floor: Key | None = None) -> Batch:
        begin, self.next = self.next, self.next + limit
        return batch(*range(begin, self.next), token=token)

    def check(self) -> None:
        """It is as it must be."""

    def close(self) -> None:
        """There are no connections."""


class Forgetful(list[Any]):
    """A list that stays empty."""

    def append(self, _one: Any, /) -> None:
        """Keep nothing."""


def test_a_worker_keeps_nothing_of_what_it_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is that of what is in hand, after a hundred thousand records as after ten thousand."""
    monkeypatch.setattr("tickoff.tables.open_table", lambda *_: Endless())
    with closing(Tickoff("memory://", database="sqlite:///endless.db")) as jobs:
        jobs.each("contacts", status="status", name="enrich", concurrency=2)(lambda _row: "yes")
        worker = jobs.records("enrich").worker()
        worker.start()
        tracemalloc.start()
        try:
            eventually(lambda: worker.counts.done > 10_000)
            early = tracemalloc.get_traced_memory()[0]
            eventually(lambda: worker.counts.done > 110_000)
            late = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            worker.stop()
    assert late - early < 1_000_000, f"{late - early:,} bytes more after 100,000 records"


def test_what_may_be_repeated_is_published_before_it_is_risked(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first record on, while claims grow from one to hundreds."""
    monkeypatch.setattr("tickoff.tables.open_table", lambda *_: Endless())
    with closing(Tickoff("memory://", database="sqlite:///endless.db")) as jobs:
        jobs.each("contacts", status="status", name="enrich", concurrency=2)(lambda _row: "yes")
        records = jobs.records("enrich")
        worker = records.worker()
        worker.start()
        beyond = []
        try:
            while worker.counts.done < 20_000:
                published = [one.repeat for one in records.servers()]
                risked = worker._hand.unwritten + worker._hand.running
                published += [one.repeat for one in records.servers()]
                if risked > max(published):
                    beyond.append((risked, published))
        finally:
            worker.stop()
    assert beyond == []


def touched(shop: Shop) -> int:
    """How many rows of the table the database has read so far, once it has counted all that was changed."""
    if shop.kind == "mariadb":
        told = dict(shop.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%%'"))
        return sum(int(told[f"Handler_read_{how}"]) for how in ("key", "next", "rnd_next"))
    stats = "FROM pg_stat_user_tables WHERE relname = '{t}'"
    eventually(lambda: shop.sql(f"SELECT n_tup_upd {stats}")[0][0] >= 2 * ROWS)
    return int(shop.sql(f"SELECT seq_tup_read + idx_tup_fetch {stats}")[0][0])


@contextmanager
def snapshot(shop: Shop) -> Iterator[None]:
    """Somebody's transaction, for which the database keeps old versions of all rows."""
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    with shop.engine.connect() as foreign:
        foreign.exec_driver_sql(
            begin if shop.kind == "postgres" else "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        )
        foreign.exec_driver_sql("SELECT count(*) FROM tickoff_claim")
        yield
        foreign.exec_driver_sql("ROLLBACK")


def test_no_claim_walks_over_what_was_done_before_it(shop: Shop) -> None:
    """It begins above the highest key: else the last ones would be as slow as the table is long."""
    if shop.kind == "sqlite":
        pytest.skip("SQLite does not tell how many rows it reads")
    shop.stock(ROWS)
    records, floor, done = shop.records(str), Floor(60.0), 0
    with snapshot(shop):
        before = 0 if shop.kind == "postgres" else touched(shop)
        while done < ROWS:
            got = records.table.claim(new_token(), "me", CLAIM, 60.0, floor.begin(elapsed()))
            floor.learn(got, 0.0, elapsed())
            verdicts = [Done(one.key, {"answer": "yes"}) for one in got.records]
            done += len(records.table.settle(got.token, verdicts, last=True).written)
        records.close()
        times = (touched(shop) - before) / ROWS
        assert times < TOUCHES
