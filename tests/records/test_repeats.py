"""What may be called again after a lost process: the bound, setting by setting; servers that are killed."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from typing import Any

import pytest

from tests.records.provider import provider
from tests.records.shop import Shop, eventually

SETTINGS: dict[str, tuple[dict[str, Any], int]] = {
    "one": ({"flush": 1, "concurrency": 1}, 1),
    "flush=1": ({"flush": 1, "concurrency": 4}, 4),
    "flush=6": ({"flush": 6, "concurrency": 3}, 3 + 5),
    "per_call": ({"flush": 1, "concurrency": 2, "per_call": 5}, 10),
    "flush and per_call": ({"flush": 6, "concurrency": 2, "per_call": 5}, 10 + 5),
}
"""Options, and how many calls for records they allow to be repeated, as the page on records says."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_killed_server_has_no_more_calls_repeated_than_its_setting_allows(
    corner_shop: Shop, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """The provider counts what it answered for the one that was killed, and again for the other."""
    options, bound = SETTINGS[setting]
    corner_shop.stock(250)
    work = "limited_batch" if "per_call" in options else "limited"
    with provider(latency=0.02) as api:
        monkeypatch.setenv("SHOP_API", api.address)
        with corner_shop.server(work, ttl="1s", **options) as doomed:
            eventually(lambda: len(api.accepted) > 100)
            doomed.signal(signal.SIGKILL)
            doomed.wait()
        with corner_shop.server(work, ttl="1s", **options) as other:
            assert other.answer()["counts"]["charged"] == 0
        assert corner_shop.states() == {"DONE": 250}
        assert len(api.paid) == 250
        assert api.repeated <= bound


def test_without_a_flush_the_published_bound_is_kept(corner_shop: Shop) -> None:
    """Half a second's work at most is unwritten, and so much is shown as possibly repeated."""
    corner_shop.stock(3000)
    called: Counter[int] = Counter()
    records = corner_shop.records(lambda row: called.update([row.id]) or "yes", concurrency=3)
    assert 7 < unwritten_at_most(corner_shop, records, called) <= 1000 + 3


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_more_is_unwritten_than_the_setting_allows(corner_shop: Shop, setting: str) -> None:
    """While the database does not take an answer, no call starts beyond that."""
    options, bound = SETTINGS[setting]
    corner_shop.stock(300)
    called: Counter[int] = Counter()

    def work(rows: Any) -> Any:
        several = rows if "per_call" in options else [rows]
        called.update(row.id for row in several)
        return ["yes" for _ in rows] if "per_call" in options else "yes"

    records = corner_shop.records(work, **options)
    assert 0 < unwritten_at_most(corner_shop, records, called) <= bound


def unwritten_at_most(shop: Shop, records: Any, called: Counter[int]) -> int:
    """How many records were called and not written, at most, while a flush is stuck halfway."""
    rows = sum(shop.states().values())
    worker = records.worker()
    stuck, free = threading.Event(), threading.Event()
    settle = worker._table.settle

    def slow(*arguments: Any, **more: Any) -> Any:
        if len(called) > 100:
            stuck.set()
            free.wait(20)
        return settle(*arguments, **more)

    worker._table.settle = slow
    worker.start()
    assert stuck.wait(20)
    done = shop.states().get("DONE", 0)
    most = 0
    for _ in range(20):
        threading.Event().wait(0.02)
        most = max(most, len(called) - done)
    assert worker.report.repeat >= most
    free.set()
    eventually(lambda: shop.states() == {"DONE": rows})
    worker.stop()
    return most


def test_a_flush_of_one_writes_each_answer_before_the_next_call(corner_shop: Shop) -> None:
    """With one call at a time, at most one paid answer is ever unwritten."""
    corner_shop.stock(30)
    unwritten: list[int] = []
    called: list[int] = []

    def work(row: Any) -> str:
        unwritten.append(len(called) - corner_shop.states().get("DONE", 0))
        called.append(row.id)
        return "yes"

    assert corner_shop.records(work, flush=1).run().counts.done == 30
    assert max(unwritten) == 0
