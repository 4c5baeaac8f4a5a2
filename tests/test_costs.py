"""What things cost, in counts: round trips, commands and commits, unlike seconds, are the same everywhere."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from dev.proxy import Proxy
from dev.servers import Server, redis_server
from redis import Redis

from tests.records.shop import Shop
from tests.virtual import job
from tickoff import Tickoff

CYCLES = 20


class Counting(Proxy):
    """Counts round trips: whatever a client sends before it is answered is one of them."""

    def __init__(self, port: int) -> None:
        self.trips = 0
        self._client_of: dict[socket.socket, socket.socket] = {}
        self._unanswered: set[socket.socket] = set()
        super().__init__(port)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        self._client_of[server] = client
        super()._requests(client, server)

    def _receive(self, one: socket.socket) -> bytes:
        data = super()._receive(one)
        client = self._client_of.get(one)
        if client is not None:
            self._unanswered.discard(client)
        elif data and one not in self._unanswered:
            self._unanswered.add(one)
            self.trips += 1
        return data


@contextmanager
def counting(url: str) -> Iterator[tuple[str, Counting]]:
    """The same URL by way of a proxy that counts."""
    parts = urlsplit(url)
    proxy = Counting(parts.port or 0)
    try:
        place = (parts.netloc.rpartition(":")[0]) + f":{proxy.port}"
        yield urlunsplit(parts._replace(netloc=place)), proxy
    finally:
        proxy.close()


@pytest.mark.parametrize(("kind", "trips"), [("redis", 2), ("postgres", 2), ("mariadb", 4)])
def test_a_lock_taken_and_released_is_so_many_round_trips(
    url_of: Callable[[str], str], name: str, kind: str, trips: int
) -> None:
    """Two, one to race and one to release; on MariaDB each of them reads first, and swaps then."""
    with counting(url_of(kind)) as (url, proxy):
        jobs = Tickoff(url)
        for _ in range(10):  # connects, makes tables, prepares statements
            with jobs.lock(name):
                pass
        before = proxy.trips
        for _ in range(CYCLES):
            with jobs.lock(name):
                pass
        found = (proxy.trips - before) / CYCLES
        jobs.close()
    assert found <= trips


def test_a_lock_on_redis_is_so_many_commands(redis: Server) -> None:
    """Those inside the scripts included: the two scripts, and what they read and write."""
    with redis_server() as own, Redis(port=own.port) as client:
        jobs = Tickoff(own.url)
        with jobs.lock("warm-up"):
            pass
        before = client.info("stats")["total_commands_processed"]
        for _ in range(CYCLES):
            with jobs.lock("cycle"):
                pass
        found = (client.info("stats")["total_commands_processed"] - before - 1) / CYCLES
        jobs.close()
    assert found <= 9


@pytest.mark.parametrize("per_call", [1, 100])
def test_a_record_on_postgres_is_a_part_of_a_round_trip_and_of_a_commit(
    postgres: Server, per_call: int
) -> None:
    """Claims and answers travel in batches, whatever a call gets."""
    rows = 5000
    shop = Shop(postgres.url, "postgres")
    shop.stock(rows)
    before = _commits(postgres.url)
    with counting(postgres.url) as (url, proxy):
        jobs = Tickoff("memory://", database=url)
        work = (lambda _row: "ok") if per_call == 1 else (lambda rows: ["ok"] * len(rows))
        listed = {} if per_call == 1 else {"per_call": per_call}
        jobs.each(shop.table, status="status", result="answer", name="costs", **listed)(work)
        with jobs.records("costs") as records:
            assert records.run().counts.done == rows
        jobs.close()
        found = proxy.trips / rows
    made = (_commits(postgres.url) - before) / rows
    shop.close()
    assert found <= 0.03
    assert made <= 0.03


def _commits(url: str) -> int:
    """Of all that closed their connections before: they report on leaving, or a second later."""
    time.sleep(0.5)
    with psycopg.connect(url, autocommit=True) as connection:
        told = connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert told is not None
    return int(told[0])


def test_many_ticks_of_one_instant_are_few_round_trips(redis: Server, name: str) -> None:
    """They race together, and their ends are told together."""
    count = 200
    ran: list[str] = []
    with counting(redis.url) as (url, proxy):
        jobs = Tickoff(url, namespace=name, slots=50)
        due = (int(time.time()) + 2) * 1000
        for i in range(count):
            jobs._jobs[f"job-{i}"] = job(f"job-{i}", At(due), work=lambda: ran.append(""))
        with jobs:
            while not ran:
                time.sleep(0.01)
            before = proxy.trips
            while len(ran) < count:
                time.sleep(0.01)
            time.sleep(0.5)
            found = proxy.trips - before
    assert found <= 20  # a take and a settlement for each fifty at most, and some for just being there


class At:
    """A schedule of one tick."""

    text = "once"

    def __init__(self, tick: int) -> None:
        self.tick = tick

    def after(self, instant: int) -> int | None:
        return self.tick if instant < self.tick else self.tick + 10**9

    def upto(self, instant: int) -> int | None:
        return self.tick if instant >= self.tick else None

    def digest(self, now: int) -> str:
        return "once"
