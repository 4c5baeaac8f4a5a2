"""A database that goes away, and users who hold rows locked: the pass goes on, nothing is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dev.servers import Server, mariadb_server, postgres_server

from tests.conftest import start
from tests.records.shop import Shop, eventually

SERVERS = {"postgres": postgres_server, "mariadb": mariadb_server}


@pytest.fixture(params=["postgres", "mariadb"])
def own(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Shop]]:
    """A server of the test's own, which it may stop, and a shop on it."""
    for server in start(SERVERS[request.param]):
        shop = Shop(server.url, request.param)
        yield server, shop
        shop.close()


def test_a_restart_of_the_database_in_the_middle_of_a_pass_costs_time_only(own: tuple[Server, Shop]) -> None:
    """Answers are kept and written when it is back; calls stop meanwhile; few are made again."""
    server, shop = own
    shop.stock(300)
    calls: Counter[int] = Counter()

    def work(row: Any) -> str:
        calls[row.id] += 1
        time.sleep(0.01)
        return f"a{row.id}"

    records = shop.records(work, concurrency=4, ttl="30s")
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(records.run()))
    thread.start()
    eventually(lambda: len(calls) > 60)
    server.stop(signal.SIGINT if shop.kind == "postgres" else signal.SIGTERM)  # at once, in their languages
    time.sleep(0.5)
    before = len(calls)
    time.sleep(1.0)
    assert len(calls) == before  # nothing is called that could not be written
    shop.engine.dispose()
    server.start()
    thread.join(60)
    assert ended[0].counts.done == 300
    assert ended[0].counts.refused == 0
    assert set(calls.values()) == {1}


def test_a_row_that_a_user_holds_locked_stalls_nothing_but_itself(shop: Shop) -> None:
    """Claims pass it over, the other answers of its flush are written, and it is done when it is free."""
    if shop.kind == "sqlite":
        pytest.skip("SQLite has one writer at a time, and no row locks")
    shop.stock(200)
    holds, frees = threading.Event(), threading.Event()

    def user() -> None:
        with shop.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"SELECT * FROM {shop.table} WHERE id IN (5, 150) FOR UPDATE")
            holds.set()
            frees.wait(60)
            connection.exec_driver_sql("COMMIT")

    def work(row: Any) -> str:
        if row.id == 5:  # claimed before the user came
            threading.Thread(target=user, daemon=True).start()
            assert holds.wait(10)
        return "yes"

    records = shop.records(work, ttl="4s")
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(records.run()))
    thread.start()
    eventually(lambda: shop.states().get("DONE", 0) == 198)
    time.sleep(4.5)  # longer than the claim lasts without renewal
    assert ended == []
    frees.set()
    thread.join(30)
    assert ended[0].counts.done == 200
    assert ended[0].counts.refused == 0


@pytest.mark.timeout(120)
def test_eight_servers_make_no_duplicate_and_no_deadlock(shop: Shop, tmp_path: Path) -> None:
    """Each row is answered by one of them, and none of them died or gave up."""
    rows = 4000
    shop.stock(rows)
    with (
        shop.server("answer", concurrency=2) as a,
        shop.server("answer", concurrency=2) as b,
        shop.server("answer", concurrency=2) as c,
        shop.server("answer", concurrency=2) as d,
        shop.server("answer", concurrency=2) as e,
        shop.server("answer", concurrency=2) as f,
        shop.server("answer", concurrency=2) as g,
        shop.server("answer", concurrency=2) as h,
    ):
        said = [one.answer() for one in (a, b, c, d, e, f, g, h)]
    assert sum(one["counts"]["done"] for one in said) == rows
    assert sum(one["counts"]["refused"] for one in said) == 0
    assert shop.states() == {"DONE": rows}
