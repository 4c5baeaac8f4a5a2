"""One pass in one process: what becomes of a record, by how its call ended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.records.shop import Shop, eventually
from tickoff import Defer, Pause, Reject

Work = Callable[[Any], Any]


class Counting:
    """A function that counts its calls by row."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.calls: Counter[int] = Counter()
        self.__name__ = "enrich"
        self.__qualname__ = "enrich"

    def __call__(self, row: Any) -> Any:
        self.calls[row.id] += 1
        return self.work(row)


def raising(error: BaseException, only: int) -> Counting:
    """A function that fails on one row."""

    def work(row: Any) -> str:
        if row.id == only:
            raise error
        return f"a{row.id}"

    return Counting(work)


def test_every_row_is_called_once_and_its_answer_written(shop: Shop) -> None:
    """Three threads, a few hundred rows; nothing twice, nothing left."""
    shop.stock(300)
    work = Counting(lambda row: f"a{row.id}")
    passed = shop.records(work, concurrency=3).run()
    assert (passed.counts.done, passed.failed, passed.paused) == (300, 0, False)
    assert set(work.calls.values()) == {1}
    number = shop.joined("'a'", "id")
    assert shop.sql(f"SELECT count(*) FROM {{t}} WHERE status = 'DONE' AND answer = {number}") == [(300,)]


def test_async_functions_run_at_once_on_one_loop(shop: Shop) -> None:
    """Up to the concurrency, and no more."""
    shop.stock(200)
    running, most, loops = 0, 0, set()

    async def work(row: Any) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0.005)
        running -= 1
        return f"a{row.id}"

    assert shop.records(work, concurrency=16).run().counts.done == 200
    assert most == 16
    assert len(loops) == 1


def test_none_is_an_answer_and_is_not_asked_for_again(shop: Shop) -> None:
    """Neither by a second pass nor after a sweep."""
    shop.stock(20)
    work = Counting(lambda _row: None)
    records = shop.records(work)
    assert records.run().counts.done == 20
    records.sweep()
    assert records.run().counts.done == 0
    assert set(work.calls.values()) == {1}
    assert shop.row(1)[:2] == ("DONE", None)


def test_an_exception_is_charged_tried_again_and_ends_in_failed(shop: Shop) -> None:
    """The attempts given, and then its words in the error column; the others are not touched."""
    shop.stock(30)
    work = raising(ValueError("no such\nnumber"), only=7)
    passed = shop.records(work, attempts=3).run()
    assert (passed.counts.done, passed.counts.failed, passed.counts.charged, passed.failed) == (29, 1, 2, 1)
    assert work.calls[7] == 3
    assert shop.row(7)[:4] == ("FAILED", None, 3, "ValueError: no such number")


def test_a_row_that_works_at_its_second_attempt_is_done(corner_shop: Shop) -> None:
    """And its error is gone."""
    corner_shop.stock(5)
    seen: list[int] = []

    def work(row: Any) -> str:
        seen.append(row.id)
        if row.id == 3 and seen.count(3) == 1:
            raise TimeoutError
        return "yes"

    assert corner_shop.records(work).run().counts.done == 5
    assert corner_shop.row(3)[:2] == ("DONE", "yes")


def test_backoff_waits_longer_each_time(corner_shop: Shop) -> None:
    """A charged row is not called before its wait is over."""
    corner_shop.stock(1)
    at: list[float] = []

    def work(_row: Any) -> None:
        at.append(time.monotonic())
        raise ValueError

    corner_shop.records(work, attempts=4, backoff="200ms").run()
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert len(waits) == 3
    assert all(wait >= 0.1 * 2**i for i, wait in enumerate(waits))


def test_defer_charges_nothing_however_often(shop: Shop) -> None:
    """More often than there are attempts; the error column says why meanwhile."""
    shop.stock(3)
    deferred: list[int] = []

    def work(row: Any) -> str:
        if row.id == 2 and len(deferred) < 4:
            deferred.append(row.id)
            raise Defer("50ms", "429 from the provider")
        return "yes"

    passed = shop.records(work, attempts=2).run()
    assert (passed.counts.done, passed.counts.deferred, passed.counts.charged) == (3, 4, 0)
    assert shop.row(2)[:3] == ("DONE", "yes", 0)


@pytest.mark.parametrize("per_call", [None, 5])
def test_a_date_in_retry_after_is_waited_for(corner_shop: Shop, per_call: int | None) -> None:
    """As a provider sends it, raised or as one of several answers; nothing is charged."""
    corner_shop.stock(1)
    began, calls = time.monotonic(), []

    def work(row: Any) -> Any:
        calls.append(row)
        until = Defer(format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True))
        if len(calls) > 1:
            return ["yes"] if per_call else "yes"
        if per_call:
            return [until]
        raise until

    passed = corner_shop.records(work, per_call=per_call).run()
    assert (passed.counts.done, passed.counts.deferred, passed.counts.charged) == (1, 1, 0)
    assert 1.9 <= time.monotonic() - began < 10  # HTTP's dates have whole seconds


def test_a_defer_that_cannot_be_read_is_charged_with_what_is_wrong(corner_shop: Shop) -> None:
    """It would wait for nobody knows how long."""
    corner_shop.stock(1)
    corner_shop.records(raising(Defer("soon"), only=1), attempts=1).run()
    assert "Defer" in corner_shop.row(1)[3]
    assert "'soon'" in corner_shop.row(1)[3] or '"soon"' in corner_shop.row(1)[3]


def test_reject_fails_at_once_with_the_reason(shop: Shop) -> None:
    """One call, no more."""
    shop.stock(3)
    work = raising(Reject("not a phone number"), only=2)
    assert shop.records(work).run().failed == 1
    assert work.calls[2] == 1
    assert shop.row(2)[::3] == ("FAILED", "not a phone number")


@pytest.mark.parametrize("colour", ["def", "async def"])
def test_pause_stops_the_pass_and_gives_claims_back(shop: Shop, colour: str) -> None:
    """What was answered before stays, nothing is in flight, nothing charged; resumed, all is done."""
    shop.stock(200)
    spent = threading.Event()

    def work(row: Any) -> str:
        if row.id > 50 and not spent.is_set():
            raise Pause("the budget is spent")
        return "yes"

    async def asynchronous(row: Any) -> str:
        return work(row)

    records = shop.records(work if colour == "def" else asynchronous, concurrency=4)
    passed = records.run()
    assert passed.paused
    assert "the budget is spent" in passed.why
    assert shop.states() == {"DONE": 50, "PENDING": 150}
    assert shop.sql("SELECT sum(status_attempts) FROM {t}") == [(0,)]
    spent.set()
    records.resume()
    assert records.run().counts.done == 150


def test_a_call_that_hangs_is_cancelled_at_its_timeout(shop: Shop) -> None:
    """An async one: its task is free for the next record at once."""
    shop.stock(10)

    async def work(row: Any) -> str:
        await asyncio.sleep(60 if row.id == 4 else 0)
        return "yes"

    passed = shop.records(work, timeout="150ms", attempts=2).run()
    assert (passed.counts.done, passed.counts.failed) == (9, 1)
    assert shop.row(4)[::3] == ("FAILED", "timed out after 0.15s")


def test_a_thread_that_hangs_is_charged_and_keeps_its_place(corner_shop: Shop) -> None:
    """The other one goes on; an answer after all is not written over the verdict."""
    corner_shop.stock(10)
    hanging = threading.Event()

    def work(row: Any) -> str:
        if row.id == 4:
            hanging.wait(30)
            return "too late"
        return "yes"

    passed = corner_shop.records(work, concurrency=2, timeout="150ms", attempts=1).run()
    assert (passed.counts.done, passed.counts.failed) == (9, 1)
    hanging.set()
    time.sleep(0.3)
    assert corner_shop.row(4)[::3] == ("FAILED", "timed out after 0.15s")


def test_a_task_that_ignores_its_cancellation_is_given_up(corner_shop: Shop) -> None:
    """It is charged like a thread that hangs."""
    corner_shop.stock(4)
    ended = threading.Event()

    async def work(row: Any) -> str:
        while row.id == 2 and not ended.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return "yes"

    passed = corner_shop.records(work, concurrency=2, timeout="100ms", attempts=1).run(grace=0.1)
    ended.set()
    assert (passed.counts.done, passed.counts.failed) == (3, 1)


@pytest.mark.parametrize(
    ("result", "value", "error"),
    [
        (("phone", "answer"), ("p", "a", "x"), "3 values were returned for the result phone, answer"),
        (("phone", "answer"), {"phone": "p"}, "the mapping has the keys phone, the result phone, answer"),
        (("phone", "answer"), "pa", "str was returned for the result phone, answer"),
        ("answer", "x" * 21, "the database refused the answer"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_the_records_fault(
    shop: Shop, result: Any, value: Any, error: str
) -> None:
    """Charged, with what would fit; the other answers of its flush are written."""
    if shop.kind == "sqlite" and result == "answer":
        pytest.skip("SQLite lets any text into a varchar")
    shop.stock(20)
    good = "a" if result == "answer" else ("p", "a")
    records = shop.records(lambda row: value if row.id == 5 else good, result=result, attempts=1)
    passed = records.run()
    assert (passed.counts.done, passed.counts.failed) == (19, 1)
    assert error in shop.row(5)[3]


@pytest.mark.parametrize("value", [("n", "y"), {"phone": "n", "answer": "y"}, ["n", "y"]])
def test_several_columns_take_a_tuple_or_a_mapping(corner_shop: Shop, value: Any) -> None:
    """And None for nothing in any of them."""
    corner_shop.stock(2)
    corner_shop.records(lambda row: value if row.id == 1 else None, result=("phone", "answer")).run()
    assert corner_shop.sql("SELECT phone, answer FROM {t} ORDER BY id") == [("n", "y"), (None, None)]


def test_without_result_columns_the_answer_is_ignored(corner_shop: Shop) -> None:
    """The function may do with it what it likes."""
    corner_shop.stock(2)
    assert corner_shop.records(lambda _row: object(), result=()).run().counts.done == 2


def test_a_coroutine_returned_by_a_plain_function_is_charged(corner_shop: Shop) -> None:
    """It would never run."""
    corner_shop.stock(1)

    async def lookup() -> str:
        return "yes"

    corner_shop.records(lambda _row: lookup(), attempts=1).run()
    assert "use async def" in corner_shop.row(1)[3]


def test_rows_that_come_while_the_pass_runs_are_worked_in_it(shop: Shop) -> None:
    """Also below the keys that were claimed already."""
    shop.stock(1)
    shop.sql("UPDATE {t} SET id = 1000 WHERE id = 1")

    def work(row: Any) -> str:
        if row.id == 1000:
            shop.insert(range(1, 11))
        return "yes"

    assert shop.records(work).run().counts.done == 11


def test_a_pass_waits_for_rows_that_another_server_has_in_flight(corner_shop: Shop) -> None:
    """It is over when all is decided, wherever."""
    corner_shop.stock(3)
    free = threading.Event()

    def work(row: Any) -> str:
        free.wait(20)
        return "yes"

    other = corner_shop.records(work, concurrency=3)
    elsewhere = threading.Thread(target=other.run)
    elsewhere.start()
    eventually(lambda: corner_shop.states() == {"IN_FLIGHT": 3})
    ended: list[float] = []
    here = threading.Thread(target=lambda: ended.append(corner_shop.records(work).run().failed))
    here.start()
    time.sleep(0.5)
    assert ended == []
    free.set()
    elsewhere.join()
    here.join()
    assert ended == [0]


def test_a_function_may_get_several_records_and_answer_for_each(shop: Shop) -> None:
    """In their order; an item may be an exception, which is that record's only."""
    shop.stock(95)
    sizes: list[int] = []

    def work(rows: list[Any]) -> list[Any]:
        sizes.append(len(rows))
        return [ValueError("odd one") if row.id == 13 else f"a{row.id}" for row in rows]

    passed = shop.records(work, per_call=10, concurrency=2, attempts=1).run()
    assert (passed.counts.done, passed.counts.failed) == (94, 1)
    assert max(sizes) == 10
    assert shop.row(94)[1] == "a94"
    assert shop.row(13)[::3] == ("FAILED", "ValueError: odd one")


@pytest.mark.parametrize("culprit", [1, 2, 57, 100])
def test_a_call_with_several_records_that_raises_is_halved_until_the_culprit_is_alone(
    corner_shop: Shop, culprit: int
) -> None:
    """It takes at most 14 more calls among a hundred, and nobody else is charged."""
    corner_shop.stock(100)
    calls: list[int] = []

    def work(rows: list[Any]) -> list[str]:
        calls.append(len(rows))
        if any(row.id == culprit for row in rows):
            raise ValueError("one of these")
        return ["yes" for _ in rows]

    passed = corner_shop.records(work, per_call=100, attempts=1).run()
    assert (passed.counts.done, passed.counts.failed) == (99, 1)
    assert len(calls) <= 1 + 14
    assert corner_shop.sql("SELECT count(*) FROM {t} WHERE status_attempts > 0") == [(1,)]


def test_a_deferred_call_with_several_records_is_neither_halved_nor_charged(corner_shop: Shop) -> None:
    """It is the provider's fault."""
    corner_shop.stock(20)
    calls: list[int] = []

    def work(rows: list[Any]) -> list[str]:
        calls.append(len(rows))
        if len(calls) == 1:
            raise Defer("100ms")
        return ["yes" for _ in rows]

    passed = corner_shop.records(work, per_call=20).run()
    assert (passed.counts.done, passed.counts.deferred, passed.counts.charged) == (20, 20, 0)
    assert calls == [20, 20]


@pytest.mark.parametrize("answers", [["only one"], "text", None])
def test_too_few_answers_are_charged_to_the_records_of_the_call(corner_shop: Shop, answers: Any) -> None:
    """Which answer belongs to whom cannot be told."""
    corner_shop.stock(3)
    corner_shop.records(lambda _rows: answers, per_call=3, attempts=1).run()
    assert corner_shop.states() == {"FAILED": 3}
    assert "return one for each" in corner_shop.row(1)[3]
