"""One run of a contender: listed, worked by so many processes, and watched from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import redis

from bench.peers import gate
from bench.peers.program import URL
from bench.peers.roll import Peer

_SHORTEST_LOOK = 0.03
_CHEAP = 30
"""The watcher sleeps so many times as long as its question took: it takes little from those it watches."""
_PATIENCE = 120.0
_SHARES = (0.1, 0.9)

Left = Callable[[], int]
Seen = list[tuple[float, int]]
"""Instants, and what was left then."""


def rate(peer: Peer, url: str, processes: int = 1, *, upto: int | None = None) -> float:
    """Records a second between the first and the last tenth of those worked; `upto` ends it early."""
    environment = os.environ | {URL: url, "dramatiq_queue_prefetch": "1000"}
    subprocess.run([*peer.fill, str(peer.count)], env=environment, check=True, stdout=subprocess.DEVNULL)
    if "at_once" in peer.work:
        told = subprocess.run(peer.work, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return peer.count / float(told.stdout)
    worked = min(peer.count, upto or peer.count)
    with counting(peer, url) as left, working(peer, environment, processes):
        return slope(watched(left, peer.count, worked), peer.count, worked)


def watched(left: Left, count: int, worked: int) -> Seen:
    """Look until so many of them are done."""
    seen: Seen = []
    deadline = time.monotonic() + _PATIENCE
    while not seen or seen[-1][1] > count - worked:
        begun = time.perf_counter()
        seen.append((begun, left()))
        if time.monotonic() > deadline:
            raise SystemExit(f"{seen[-1][1]} of {count} were left after {_PATIENCE:.0f} s")
        time.sleep(max(_SHORTEST_LOOK, _CHEAP * (time.perf_counter() - begun)))
    return seen


def slope(seen: Seen, count: int, worked: int) -> float:
    """From the last look before a tenth was done to the last one before nine tenths were."""
    first, last = (max(sum(left > count - worked * share for _, left in seen) - 1, 0) for share in _SHARES)
    (begun, before), (ended, after) = seen[first], seen[max(last, first + 1)]
    return (before - after) / (ended - begun)


@contextmanager
def working(peer: Peer, environment: dict[str, str], processes: int) -> Iterator[None]:
    """So many workers, let go together, each with its children ended in the end."""
    with tempfile.TemporaryDirectory() as place:
        environment = environment | {gate.PLACE: place}
        workers = [
            subprocess.Popen(
                peer.work,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for _ in range(processes)
        ]
        try:
            gate.open_for(Path(place), processes)
            yield
        finally:
            for worker in workers:
                _end(worker)


def _end(worker: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(10)
            return


@contextmanager
def counting(peer: Peer, url: str) -> Iterator[Left]:
    """A connection that asks what is left."""
    with contextlib.ExitStack() as stack:
        if peer.broker == "redis":
            client = stack.enter_context(redis.Redis.from_url(url))
            yield lambda: sum(int(client.execute_command(*query.split())) for query in peer.left)
            return
        cursor = stack.enter_context(contextlib.closing(_connection(peer.broker, url))).cursor()

        def left() -> int:
            return sum(_number(cursor, query) for query in peer.left)

        yield left


def _connection(broker: str, url: str) -> Any:
    """Of one of three drivers."""
    if broker == "postgres":
        return psycopg.connect(url, autocommit=True)
    if broker == "sqlite":
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    parts = urlsplit(url)
    where = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    return pymysql.connect(**where, database=parts.path.strip("/"), autocommit=True)


def _number(cursor: Any, query: str) -> int:
    cursor.execute(query)
    return int(cursor.fetchone()[0])
