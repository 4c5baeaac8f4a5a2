"""`concurrency="auto"`: the number found, against providers of several kinds, in virtual time."""

from __future__ import annotations

import asyncio
import heapq
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.records.provider import Provider
from tests.records.shop import Shop, eventually
from tickoff import Defer, Tickoff
from tickoff.errors import ConfigError
from tickoff.records.limit import Bounds, Limit

LENGTH = 20 if os.environ.get("TICKOFF_FULL") == "1" else 8
"""Seconds that are left to find a number, and then to look at it."""

Latency = Callable[[int, float], float]
"""Seconds that a call takes, by how many run and by when it starts."""


def worked(limit: Limit, latency: Latency, start: float, end: float) -> int:
    """How many calls end between two instants, when callers are always ready."""
    now, ended = start, 0
    running: list[tuple[float, float]] = []
    while now < end:
        while limit.opens(now, len(running)) <= now:
            took = latency(len(running) + 1, now)
            heapq.heappush(running, (now + took, took))
        now, took = heapq.heappop(running)
        limit.ended(took, now)
        ended += 1
    return ended


def crowded(calls: int, _now: float) -> float:
    """Each call makes the others slower, the more the worse: 16 at once are best."""
    return 0.02 * (1 + (calls / 16) ** 2)


def queued(calls: int, _now: float) -> float:
    """Twelve are served at once, the others wait."""
    return 0.02 * max(1.0, calls / 12)


def proportional(calls: int, _now: float) -> float:
    """Slower with each call, but never slower for all."""
    return 0.02 * (1 + calls / 20)


def steady(_calls: int, _now: float) -> float:
    """As fast however many there are."""
    return 0.02


@pytest.mark.parametrize("latency", [crowded, queued, proportional, steady])
def test_it_finds_four_fifths_of_what_the_best_number_does(latency: Latency) -> None:
    """Within half a minute, starting at one."""
    best = max(n / latency(n, 0.0) for n in range(1, 65))
    limit = Limit(Bounds(1, 64))
    worked(limit, latency, 0.0, 30.0)
    assert worked(limit, latency, 30.0, 90.0) >= 0.8 * best * 60


def test_it_comes_down_when_the_provider_degrades_and_up_again_when_it_recovers() -> None:
    """Half a minute after it serves three at once instead of thirty."""

    def degrading(calls: int, now: float) -> float:
        served = 3 if 60 <= now < 120 else 30
        return 0.02 * max(1.0, calls / served)

    limit = Limit(Bounds(1, 64))
    worked(limit, degrading, 0.0, 60.0)
    assert 20 <= limit.size <= 45
    worked(limit, degrading, 60.0, 100.0)
    assert limit.size <= 8
    worked(limit, degrading, 100.0, 180.0)
    assert limit.size >= 18


def test_a_defer_or_a_time_out_takes_it_down_once() -> None:
    """All calls that were under way then say so; it is one event."""
    limit = Limit(Bounds(2, 64))
    worked(limit, steady, 0.0, 30.0)
    before = limit.size
    for _ in range(before):
        limit.overloaded(30.0)
    assert before * 0.5 <= limit.size < before
    for second in range(60):
        limit.overloaded(31.0 + second)
    assert limit.size == 2


@pytest.mark.parametrize(
    "value", ["many", 0, -1, 10**9, True, None, (4, 4), (0, 5), (9, 3), (1, 2, 3), [1, 5], 2.5]
)
def test_a_wrong_concurrency_is_refused_when_decorating(value: Any) -> None:
    """With the three ways to say it."""
    with pytest.raises(ConfigError, match=r'concurrency=.*"auto".*\(4, 200\)'):
        Tickoff("memory://").each("contacts", status="status", concurrency=value)(print)


def test_the_bounds_are_kept_and_a_pass_is_worked(corner_shop: Shop) -> None:
    """With as many calls at once as pay, between the bounds of the user."""
    corner_shop.stock(1500)
    running: list[int] = [0]
    most: list[int] = [0]

    deferred: list[int] = []

    async def work(row: Any) -> str:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        if row.id == 700 and not deferred:
            deferred.append(row.id)
            raise Defer("50ms")
        return "yes"

    records = corner_shop.records(work, concurrency=(2, 12))
    assert records.run().counts.done == 1500
    assert 4 <= most[0] <= 12


class Crowded(Provider):
    """Slower for all with each request it serves at once: so many are best for it."""

    best = 16

    def latency(self, serving: int) -> float:
        """Twice as slow at the best number as alone."""
        return 0.1 * (1 + (serving / self.best) ** 2)


async def asked(api: Provider, row: Any) -> str:
    """The API's answer, over a connection of its own."""
    reader, writer = await asyncio.open_connection(*api.address.split(":"))
    try:
        writer.write(f"GET /{row.phone} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        return "yes"
    finally:
        writer.close()


@contextmanager
def working(shop: Shop, api: Provider, concurrency: Any) -> Iterator[None]:
    """A worker that calls this API."""

    async def lookup(row: Any) -> str:
        return await asked(api, row)

    worker = shop.records(lookup, concurrency=concurrency).worker()
    worker.start()
    yield
    worker.stop()


def rate_of(api: Provider, length: float) -> float:
    """Answers a second in the seconds to come."""
    start = time.monotonic()
    time.sleep(length)
    return api.rate(start, start + length)


@pytest.mark.alone
@pytest.mark.timeout(180)
def test_on_a_real_api_it_finds_what_the_best_number_does_and_comes_down_when_that_degrades(
    corner_shop: Shop,
) -> None:
    """Over HTTP, beside the best number in the same run; then the API can serve two at once, well."""
    corner_shop.stock(8000)
    api = Crowded(0.0)
    api.start()
    try:
        with working(corner_shop, api, Crowded.best):
            time.sleep(2)
            fixed = rate_of(api, LENGTH / 2)
        with working(corner_shop, api, "auto"):
            time.sleep(LENGTH)
            found = rate_of(api, LENGTH)
            api.best = 2
            eventually(lambda: api.serving <= 6, 40)
            time.sleep(5)
            stays = api.serving
    finally:
        api.stop()
    print(f"best number {fixed:.1f}/s, auto {found:.1f}/s, {stays} at once when it degraded")
    assert fixed > 40  # of 80 by its own words, on a machine that is its own
    assert found >= 0.8 * fixed
    assert stays <= Crowded.best / 2  # now and then it tries a few more
