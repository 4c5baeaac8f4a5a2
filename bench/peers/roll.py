"""Who takes part: how work is listed and worked, how it is counted from outside, and with which settings."""

from __future__ import annotations

import sys
from dataclasses import dataclass

PYTHON = sys.executable
_ROWS_LEFT = "SELECT count(*) FROM bench_contacts WHERE status <> 'DONE'"


@dataclass(frozen=True)
class Peer:
    """A contender. `fill` is called with a count added, `left` are queries whose sum is what is not done."""

    label: str
    broker: str
    """Which server it needs: postgres, mariadb, redis, sqlite."""
    fill: tuple[str, ...]
    work: tuple[str, ...]
    left: tuple[str, ...]
    count: int
    """How much it is given in a run: some seconds of work."""
    settings: str = ""


def _module(name: str, *words: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "bench.peers.program", name, *words)


def _tickoff(broker: str, count: int, per_call: int = 1, colour: str = "sync") -> Peer:
    words = "a record per call" if per_call == 1 else f"per_call={per_call}"
    return Peer(
        f"Tickoff, {words}" + (", async def" if colour == "async" else ""),
        broker,
        _module("on_tickoff", "fill"),
        _module("on_tickoff", "work", str(per_call), colour),
        (_ROWS_LEFT,),
        count,
        "concurrency 1, the leases in the same database",
    )


def _by_hand(label: str, broker: str, count: int, words: tuple[str, ...], settings: str) -> Peer:
    work = _module("on_rows", *words)
    return Peer(label, broker, _module("on_rows", "fill"), work, (_ROWS_LEFT,), count, settings)


def naive(broker: str, count: int = 2000) -> Peer:
    """One row a transaction."""
    settings = "SELECT … FOR UPDATE SKIP LOCKED LIMIT 1, UPDATE, COMMIT"
    return _by_hand("naive SKIP LOCKED loop", broker, count, ("naive",), settings)


def batched(broker: str, count: int = 100_000) -> Peer:
    """A bare claim-and-complete loop."""
    settings = "500 rows per claim, two transactions a batch, plans pinned; nothing renewed, retried or swept"
    return _by_hand("limit: bare batched loop", broker, count, ("batched", "500"), settings)


def at_once(broker: str) -> Peer:
    """One statement for all rows."""
    return _by_hand("limit: one UPDATE of all rows", broker, 200_000, ("at_once",), "no call is made at all")


PGQUEUER = Peer(
    "pgqueuer",
    "postgres",
    _module("on_pgqueuer", "fill"),
    _module("on_pgqueuer", "work"),
    ("SELECT count(*) FROM pgqueuer",),
    20_000,
    "asyncpg, uvloop, batch 500, drain mode",
)
PROCRASTINATE = Peer(
    "procrastinate",
    "postgres",
    _module("on_procrastinate", "fill"),
    _module("on_procrastinate", "work"),
    ("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",),
    500,
    "concurrency 30",
)
DRAMATIQ = Peer(
    "dramatiq",
    "redis",
    _module("on_dramatiq", "fill"),
    (PYTHON, "-m", "dramatiq", "bench.peers.on_dramatiq", "-p", "1", "-t", "8"),
    ("HLEN dramatiq:default.msgs",),
    10_000,
    "-p 1 -t 8, 1,000 messages fetched ahead",
)
CELERY = Peer(
    "celery",
    "redis",
    _module("on_celery", "fill"),
    (
        *(PYTHON, "-m", "celery", "-A", "bench.peers.on_celery", "worker", "-P", "prefork", "-c", "1"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "error"),
    ),
    ("LLEN celery", "HLEN unacked"),
    1200,
    "prefork, -c 1, 400 messages fetched ahead, results ignored",
)


def _huey(broker: str, left: str) -> Peer:
    consumer = f"{PYTHON.rpartition('/')[0]}/huey_consumer"
    options = ("bench.peers.on_huey.huey", "-w", "4", "-d", "0.01", "-n", "-q")
    settings = "4 threads, results off, asks every 10 ms when idle"
    return Peer(
        f"huey, {broker}",
        broker,
        _module("on_huey", "fill"),
        (consumer, *options),
        (left,),
        6000,
        settings,
    )


HUEY_REDIS = _huey("redis", "LLEN huey.redis.huey")
HUEY_SQLITE = _huey("sqlite", "SELECT count(*) FROM task")

TICKOFF, TICKOFF_ASYNC = _tickoff("postgres", 100_000), _tickoff("postgres", 100_000, colour="async")
TICKOFF_100, TICKOFF_500 = _tickoff("postgres", 100_000, 100), _tickoff("postgres", 100_000, 500)
LITE, LITE_100 = _tickoff("sqlite", 80_000), _tickoff("sqlite", 80_000, 100)
MARIA, MARIA_100 = _tickoff("mariadb", 50_000), _tickoff("mariadb", 50_000, 100)
