"""A provider that is down: nothing is charged, hardly anything is called, and the pass goes on by itself."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import pytest

from tests.records.provider import provider
from tests.records.shop import Shop, eventually
from tickoff.records.circuit import IN_A_ROW, Circuit

OUTAGE = 20


def test_so_many_failures_that_are_alike_open_it_and_an_answer_closes_it() -> None:
    """With the reason; a probe may pass meanwhile, one at a time."""
    circuit = Circuit("enrich")
    for i in range(IN_A_ROW):
        assert circuit.opens(0.0, 0) == 0.0
        assert (circuit.opens(0.0, 1) == 0.0) == (i < 3)  # then one call at a time is made
        circuit.failed("OSError", (i,), "ConnectionRefusedError: no", 0.0)
    assert circuit.open
    assert "ConnectionRefusedError: no" in circuit.why
    assert circuit.opens(1.0, 0) > 1.0
    circuit.probe()
    assert circuit.opens(1.0, 0) == 1.0
    circuit.spend()
    assert circuit.opens(1.0, 0) > 1.0
    assert circuit.answered(20.0)
    assert circuit.opens(20.0, 0) == 20.0


def test_failures_of_different_kinds_or_of_few_records_leave_it_closed() -> None:
    """They may well be the records' own; so may those with an answer in between."""
    circuit = Circuit("enrich")
    for i in range(100):
        circuit.failed(f"kind {i % 3}", (i,), "no", 0.0)
    assert not circuit.open
    for i in range(100):
        circuit.failed("alike", (i % 2,), "no", 0.0)
    assert not circuit.open
    for i in range(100):
        circuit.answered(0.0)
        circuit.failed("alike", (i,), "no", 0.0)
    assert not circuit.open


def test_a_false_alarm_is_not_raised_again_at_once() -> None:
    """The provider answered others: so failures of this kind are charged for a while."""
    circuit = Circuit("enrich")

    def fail(at: float) -> None:
        for i in range(IN_A_ROW):
            circuit.failed("alike", (i,), "no", at)

    fail(0.0)
    circuit.answered(1.0)
    fail(2.0)
    assert not circuit.open
    fail(70.0)
    assert circuit.open


def test_a_table_on_which_every_call_fails_differently_ends_in_failed(corner_shop: Shop) -> None:
    """Those are the records' own faults, charged as ever."""
    corner_shop.stock(40)

    def work(row: Any) -> None:
        raise ValueError("abcdefghij"[row.id % 10])

    passed = corner_shop.records(work, attempts=2).run()
    assert (passed.failed, passed.counts.charged) == (40, 40)


def test_without_a_circuit_failures_are_charged_however_alike(corner_shop: Shop) -> None:
    """For those who want a pass to end when every record is bad."""
    corner_shop.stock(40)

    def work(_row: Any) -> None:
        raise ValueError("bad")

    assert corner_shop.records(work, attempts=1, circuit=False).run().failed == 40


@pytest.mark.timeout(120)
@pytest.mark.parametrize("per_call", [None, 10] if os.environ.get("TICKOFF_FULL") else [10])
def test_a_provider_that_is_down_charges_no_record_and_is_left_alone(
    corner_shop: Shop, per_call: int | None
) -> None:
    """Two servers' worth of calls: few while it is down, and all rows DONE in the end."""
    corner_shop.stock(4000)
    calls: Counter[int] = Counter()
    down: list[float] = []

    def work(rows: Any) -> Any:
        time.sleep(0.02)
        if state["down"]:
            down.append(time.monotonic())
            raise RuntimeError("the API said 503")
        for row in rows if per_call else [rows]:
            calls[row.id] += 1
        return ["yes" for _ in rows] if per_call else "yes"

    state = {"down": False}
    records = corner_shop.records(work, concurrency=4, per_call=per_call, attempts=2)
    workers = [records.worker(), corner_shop.records(work, concurrency=4, per_call=per_call).worker()]
    for worker in workers:
        worker.start()
    eventually(lambda: len(calls) > 100)
    state["down"] = True
    time.sleep(OUTAGE / 2)
    assert "503" in records.progress().held
    time.sleep(OUTAGE / 2)
    state["down"] = False
    try:
        eventually(lambda: corner_shop.states() == {"DONE": 4000}, 40)
    finally:
        for worker in workers:
            worker.stop()
    assert len(down) <= 2 * OUTAGE
    assert [worker.report.counts.charged for worker in workers] == [0, 0]
    assert set(calls.values()) == {1}


@pytest.mark.timeout(180)
def test_a_fleet_gets_over_an_outage_by_itself(corner_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four servers against an HTTP API that says 503 for twenty seconds."""
    corner_shop.stock(3000)
    with provider(latency=0.05) as api:
        monkeypatch.setenv("SHOP_API", api.address)
        server = corner_shop.server
        options: dict[str, Any] = {"concurrency": 4, "attempts": 2, "ttl": "60s"}
        with (
            server("limited", **options) as a,
            server("limited", **options) as b,
            server("limited", **options) as c,
            server("limited", **options) as d,
        ):
            eventually(lambda: len(api.accepted) > 300)
            api.down = True
            time.sleep(OUTAGE)
            api.down = False
            said = [one.answer(100) for one in (a, b, c, d)]
        calls = len(api.failed)
    print(f"{calls} calls while it was down")
    assert corner_shop.states() == {"DONE": 3000}
    assert sum(one["counts"]["charged"] for one in said) == 0
    assert calls <= 2 * OUTAGE
