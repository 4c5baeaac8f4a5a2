"""`Defer(after)`: the provider wants to be left alone, by all servers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.records.provider import provider
from tests.records.shop import Shop, eventually
from tickoff import Defer


@pytest.mark.timeout(90)
def test_a_defer_holds_back_the_other_servers_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a second, until its time is over; then they go on. The row itself is done in the end."""
    shop.stock(6000)
    told: list[float] = []

    def work(_row: Any) -> str:
        if not told:
            told.append(time.monotonic())
            raise Defer("4s", "Retry-After: 4")
        return "yes"

    with provider(latency=0.02) as api:
        monkeypatch.setenv("SHOP_API", api.address)
        with shop.server("limited", "serve", concurrency=2, ttl="60s"):
            eventually(lambda: len(api.accepted) > 20)
            worker = shop.records(work, ttl="60s").worker()
            worker.start()
            try:
                eventually(lambda: told)
                held = eventually(lambda: worker.report.held)
                eventually(lambda: len(api.accepted) > 20 and api.accepted[-1] > told[0] + 3.9)
            finally:
                worker.stop()
    assert "Retry-After: 4" in held
    during = [at - told[0] for at in api.accepted if told[0] + 1.5 < at < told[0] + 3.8]
    assert during == []
    assert worker.report.counts.charged == 0
