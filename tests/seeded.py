"""A store as a large fleet leaves it: many jobs, a long history; written past the rules, as it is a lot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, cast

from tickoff.model import Entry, Outcome, Run
from tickoff.schedules.schedule import every
from tickoff.stores import open_store
from tickoff.stores.sql import schema
from tickoff.stores.sql.store import SqlStore, row_of
from tickoff.ticks.job import Job
from tickoff.ticks.presence import CATALOG_LIFE, Server, board, carried

MINUTE = 60_000


def seed(url: str, namespace: str, jobs: int = 1000, runs_each: int = 100, servers: int = 100) -> list[str]:
    """Jobs that ran every minute until now, carried by servers that are there; their names."""
    store = cast("Any", open_store(url))
    now = store.now()
    names = [f"{namespace}:job-{number:04}" for number in range(jobs)]
    _post(store, namespace, names, now, servers)
    entries = [_entry(name, now) for name in names]
    runs = [run for name in names for run in _runs(name, runs_each, now)]
    (_seed_sql if isinstance(store, SqlStore) else _seed_redis)(store, entries, runs)
    store.close()
    return [name.removeprefix(f"{namespace}:") for name in names]


def _post(store: Any, namespace: str, names: list[str], now: int, servers: int) -> None:
    told = [Job(name=name, schedule=every("1m"), work=print, ttl=MINUTE) for name in names]
    catalog = json.dumps([asdict(carried(job, now)) for job in told])
    store.post(board(namespace, "jobs"), "all", catalog, CATALOG_LIFE)
    for number in range(servers):
        one = Server(owner=f"web-{number}:1:x", version="1", started=now, skew=0.0, catalog="all")
        store.post(board(namespace, "servers"), one.owner, json.dumps(asdict(one)), 60 * MINUTE)


def _entry(name: str, now: int) -> Entry:
    tick = now - now % MINUTE
    ended = {"outcome": Outcome.OK, "outcome_by": "web-1:1:x", "outcome_at": tick + 1000}
    marks = {"decided": tick, "finished": tick, "since": tick, "attempt": 1, "fence": tick}
    return replace(Entry(name=name), version=1, scheduled=True, used=now, **ended, **marks)  # type: ignore[arg-type]


def _runs(name: str, number: int, now: int) -> Iterator[Run]:
    for minute in range(number):
        tick = now - now % MINUTE - minute * MINUTE
        yield Run(
            name=name,
            tick=tick,
            fence=tick,
            owner="web-1:1:x",
            started=tick,
            ended=tick + 1000,
            outcome=Outcome.OK,
            attempt=1,
        )


def _seed_sql(store: SqlStore, entries: list[Entry], runs: list[Run]) -> None:
    rows = [asdict(run) | {"manual": 0} for run in runs]
    with store.connection() as connection, store.dialect.writing(connection):
        connection.execute(schema.lease.insert(), [row_of(entry) for entry in entries])
        for start in range(0, len(rows), 5000):
            connection.execute(schema.run.insert(), rows[start : start + 5000])


def _seed_redis(store: Any, entries: list[Entry], runs: list[Run]) -> None:
    with store.client.pipeline(transaction=False) as pipeline:
        for entry in entries:
            told = {
                key: value for key, value in asdict(entry).items() if value and key not in ("name", "version")
            }
            pipeline.set(f"tickoff:{{lock:{entry.name}}}", json.dumps(told | {"scheduled": 1}))
        for run in runs:
            told = {key: value for key, value in asdict(run).items() if value and key != "name"}
            line = f"{run.fence:016}{json.dumps(told)}"
            pipeline.zadd(f"tickoff:{{lock:{run.name}}}:runs", {line: run.tick})
        pipeline.execute()
