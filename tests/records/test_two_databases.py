"""Leases, rate and pauses on Redis, records on PostgreSQL: one application, two stores."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import pytest
import sqlalchemy as sa

from tests.records.shop import NAME, Shop, eventually
from tickoff import Tickoff


@pytest.fixture
def postgres_shop(url_of: Callable[[str], str]) -> Any:
    """A shop on PostgreSQL."""
    shop = Shop(url_of("postgres"), "postgres")
    yield shop
    shop.close()


def test_two_servers_with_leases_on_redis_share_records_on_postgresql(
    postgres_shop: Shop, url_of: Callable[[str], str]
) -> None:
    """A pause and the rate go by Redis, rows and claims by PostgreSQL; each row is called once."""
    postgres_shop.stock(400)
    calls: Counter[int] = Counter()

    def work(row: Any) -> str:
        calls[row.id] += 1
        return f"a{row.id}"

    with ExitStack() as stack:
        options = {"status": "status", "result": "answer", "rate": "200/s", "concurrency": 4}
        fleet = []
        for _ in range(2):
            jobs = Tickoff(
                url_of("redis"), database=postgres_shop.url, namespace=f"two-{postgres_shop.table}"
            )
            stack.enter_context(closing(jobs))
            jobs.each(postgres_shop.table, name=NAME, **options)(work)
            fleet.append(stack.enter_context(jobs.records(NAME)))
        assert fleet[0]._referee.store.address.startswith("redis://")
        start = time.monotonic()
        ended: list[Any] = []
        threads = [threading.Thread(target=lambda one=one: ended.append(one.run())) for one in fleet]
        for thread in threads:
            thread.start()
        eventually(lambda: len(calls) > 50)
        fleet[0].pause("have a look")
        for thread in threads:
            thread.join(30)
        assert [passed.paused for passed in ended] == [True, True]
        assert postgres_shop.states().keys() == {"DONE", "PENDING"}
        fleet[1].resume()
        assert fleet[0].run().failed == 0
        took = time.monotonic() - start
    assert postgres_shop.states() == {"DONE": 400}
    assert set(calls.values()) == {1}
    assert took > 1.5  # it cannot be faster at 200 a second
    tables = sa.inspect(postgres_shop.engine).get_table_names()
    assert "tickoff_claim" in tables
