"""Servers that die, hang and are told to go: nothing is lost, nothing charged that is nobody's fault."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from tests.records.shop import NAME, Shop, eventually

FULL = os.environ.get("TICKOFF_FULL") == "1"


def test_a_record_that_kills_its_server_is_parked_and_no_bystander_is_charged(shop: Shop) -> None:
    """Whenever a server dies another one is started; all but the one are DONE, at no attempt charged."""
    rows = 5000 if FULL else 1000
    shop.stock(rows)
    deaths = 0
    while True:
        with shop.server("poison", ttl="1s", attempts=3, concurrency=4) as server:
            if server.wait(120) == 0:
                break
            assert server.process.returncode == -signal.SIGKILL, server.process.stderr.read()
        deaths += 1
        assert deaths < 10
    assert shop.states() == {"DONE": rows - 1, "FAILED": 1}
    assert deaths == 4  # once among others, uncharged; then alone, until its attempts were used up
    assert shop.sql("SELECT count(*) FROM {t} WHERE status_attempts <> 0") == [(1,)]


def test_the_answer_of_a_server_that_was_stopped_past_its_claim_is_refused(shop: Shop) -> None:
    """Another one did its records meanwhile; what it wrote stays, and the late answers are counted."""
    shop.stock(8)
    with shop.server("very_slow", ttl="1s", concurrency=8) as zombie:
        eventually(lambda: shop.states().get("IN_FLIGHT") == 8)
        time.sleep(0.3)  # the calls have begun
        zombie.freeze()
        passed = shop.records(lambda row: "second", ttl="1s").run()
        assert passed.counts.done == 8
        zombie.thaw()
        said = zombie.answer()
    assert (said["counts"]["done"], said["counts"]["refused"]) == (0, 8)
    assert set(shop.sql("SELECT answer FROM {t}")) == {("second",)}


def test_a_server_that_was_stopped_while_another_took_its_record_does_not_answer_for_it(shop: Shop) -> None:
    """It comes back while the other one is still at work: what that one says will count."""
    shop.stock(1)
    with shop.server("very_slow", ttl="1s") as zombie:
        eventually(lambda: shop.states().get("IN_FLIGHT") == 1)
        time.sleep(0.3)  # the call has begun
        zombie.freeze()

        def second(row: Any) -> str:
            zombie.thaw()
            time.sleep(2.0)  # it tries to write its answer
            return "second"

        passed = shop.records(second, ttl="1s", timeout="30s").run()
        assert (passed.counts.done, zombie.answer()["counts"]["refused"]) == (1, 1)
    assert shop.sql("SELECT answer FROM {t}") == [("second",)]


def test_sigterm_lets_calls_end_and_gives_the_rest_back_at_once(shop: Shop) -> None:
    """What was under way is DONE, what was claimed ahead is PENDING for the others, uncharged."""
    shop.stock(400)
    with shop.server("slow", concurrency=4) as server:
        eventually(lambda: shop.states().get("DONE", 0) > 8)
        server.signal(signal.SIGTERM)
        said = server.answer()
    states = shop.states()
    assert said["interrupted"]
    assert said["counts"]["done"] == states["DONE"] < 400
    assert states == {"DONE": states["DONE"], "PENDING": 400 - states["DONE"]}
    assert shop.sql("SELECT sum(status_attempts) FROM {t}") == [(0,)]


def test_async_calls_that_outlast_the_grace_are_cancelled_and_not_charged(shop: Shop) -> None:
    """Their records are PENDING at once; nobody has to wait for the sweep."""
    import asyncio
    import threading

    shop.stock(10)
    stop, begun = threading.Event(), threading.Event()

    async def work(_row: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    records = shop.records(work, concurrency=5)
    threading.Timer(0, lambda: begun.wait(20) and stop.set()).start()
    passed = records.run(grace=0.1, stop=stop)
    assert passed.interrupted
    assert shop.states() == {"PENDING": 10}
    assert shop.sql("SELECT sum(status_attempts) FROM {t}") == [(0,)]


def test_a_killed_servers_records_come_back_within_ttl_and_sweeps(corner_shop: Shop) -> None:
    """Claim TTL + sweep interval + sweep TTL, each of them a second here; the other server does them."""
    corner_shop.stock(50)
    with corner_shop.server("very_slow", ttl="1s", concurrency=50) as doomed:
        eventually(lambda: corner_shop.states().get("IN_FLIGHT") == 50)
        doomed.process.kill()
    died = time.monotonic()
    with corner_shop.server("answer", "serve", ttl="1s"):
        eventually(lambda: corner_shop.states().get("IN_FLIGHT", 0) < 50)
        assert time.monotonic() - died < 3 + 12  # a process needs its time to start, too
        eventually(lambda: corner_shop.states() == {"DONE": 50})


def test_a_server_that_dies_is_missed_at_once(corner_shop: Shop) -> None:
    """What it had claimed is in flight still, and what it did last is counted, without a wait for either."""
    corner_shop.stock(50)
    records = corner_shop.records(str, ttl="60s")
    with corner_shop.server("stuck", ttl="60s", concurrency=10) as doomed:
        eventually(lambda: [one.counts.done for one in records.progress().servers] == [20])
        doomed.process.kill()
        corner_shop.sql("UPDATE {t} SET status = 'DONE' WHERE id = 21")  # its very last word
    eventually(lambda: not records.servers())
    progress = records.progress()
    assert (progress.done, progress.pending + progress.in_flight) == (21, 29)
    assert progress.in_flight >= 10
    assert [f":{doomed.process.pid}:" in one.owner for one in progress.silent] == [True]


def test_a_pause_said_elsewhere_is_obeyed_within_a_second(shop: Shop) -> None:
    """And so is the word to go on; what was claimed ahead is given back meanwhile."""
    shop.stock(2000)
    with shop.server("slow", "serve", concurrency=4):
        eventually(lambda: shop.states().get("DONE", 0) > 4)
        operator = shop.jobs(str).records(NAME)
        operator.pause("a look at the bill")
        said = time.monotonic()
        eventually(lambda: "IN_FLIGHT" not in shop.states())
        assert time.monotonic() - said < 6  # a second to hear it, a call and its flush; machines are busy
        done = shop.states()["DONE"]
        time.sleep(0.7)
        assert shop.states()["DONE"] == done
        assert operator.progress().paused_why == "a look at the bill"
        operator.resume()
        eventually(lambda: shop.states()["DONE"] > done)
        operator.close()


def test_retried_rows_with_low_keys_do_not_starve_under_an_inflow(shop: Shop) -> None:
    """New rows arrive at the high end as fast as they are worked; the low ones are worked all the same."""
    shop.stock(100)
    shop.sql("UPDATE {t} SET status = 'FAILED' WHERE id <= 10")
    with shop.server("slow", "serve", ttl="60s", concurrency=4):
        eventually(lambda: shop.states().get("DONE", 0) >= 20)
        operator = shop.records(str)
        assert operator.retry() == 10
        highest, deadline = 100, time.monotonic() + 20
        while shop.sql("SELECT count(*) FROM {t} WHERE status = 'DONE' AND id <= 10") != [(10,)]:
            shop.insert(range(highest + 1, highest + 21))
            highest += 20
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert shop.states()["PENDING"] > 0
