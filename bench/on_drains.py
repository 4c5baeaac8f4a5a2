"""Long drains and many processes: whether rate and memory stay flat, and whether anything is done twice."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.on_records import DROP, FRESH, Database
from tickoff import Tickoff
from tickoff.records.worker import Worker


@dataclass(frozen=True)
class Tenth:
    """A tenth of a drain: its rate, and the memory of the process at its end."""

    rate: float
    memory: int
    """Resident, in MiB."""


def drain(opened: Database, rows: int) -> list[Tenth]:
    """Fill and drain so many rows with one worker."""
    _fresh(opened, rows)
    return _drained(opened, rows)


def drain_beside_a_snapshot(opened: Database, rows: int) -> list[Tenth]:
    """The same while somebody's transaction keeps the database from forgetting old versions of rows."""
    _fresh(opened, rows)
    with psycopg.connect(opened.url, autocommit=True) as foreign:
        foreign.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        foreign.execute("SELECT count(*) FROM pg_class")  # the snapshot is taken by the first query
        return _drained(opened, rows)


def _drained(opened: Database, rows: int) -> list[Tenth]:
    jobs = _jobs(opened.url)
    with jobs.records("bench") as records:
        records.table.install()
        worker = records.worker()
        worker.start()
        tenths = [_tenth(worker, rows, tenth) for tenth in range(1, 11)]
        worker.stop()
    jobs.close()
    return tenths


def rate_beside(opened: Database, rows: int, worked: int) -> float:
    """Records a second, of so many worked in a table of so many rows."""
    _fresh(opened, rows)
    jobs = _jobs(opened.url)
    with jobs.records("bench") as records:
        records.table.install()
        worker = records.worker()
        worker.start()
        _until(worker, worked // 10)  # connections, plans and the size of the claims have settled by now
        begun, before = time.perf_counter(), worker.counts.done
        _until(worker, worked * 9 // 10)  # then the pipeline begins to run dry where there are no more
        rate = (worker.counts.done - before) / (time.perf_counter() - begun)
        worker.stop()
    jobs.close()
    return rate


def fleet(opened: Database, rows: int, processes: int) -> str:
    """Drain with several processes; what became of it, in words."""
    _fresh(opened, rows)
    jobs = _jobs(opened.url)
    with jobs.records("bench") as records:
        records.table.install()
    jobs.close()
    spawn = multiprocessing.get_context("spawn")
    ready, calls = spawn.Barrier(processes + 1), spawn.Queue()
    crew = [spawn.Process(target=_serve, args=(opened.url, ready, calls)) for _ in range(processes)]
    for process in crew:
        process.start()
    ready.wait()
    begun = time.perf_counter()
    made = [calls.get() for _ in crew]
    spent = time.perf_counter() - begun
    for process in crew:
        process.join()
    return f"{processes} processes: {rows / spent:,.0f} records/s, {_harm(opened.url, rows, sum(made))}"


def _harm(url: str, rows: int, calls: int) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        told = connection.execute(
            "SELECT (SELECT count(*) FROM bench_contacts WHERE status = 'DONE'), "
            "(SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())"
        ).fetchone()
    done, deadlocks = told or (0, 0)
    return f"{done:,} of {rows:,} DONE, {calls - rows} calls repeated, {deadlocks} deadlocks"


def _serve(url: str, ready: Any, calls: Any) -> None:
    """One process: work until nothing is left; how many calls it made."""
    made = 0

    def work(_row: Any) -> str:
        nonlocal made
        made += 1
        return "x"

    jobs = Tickoff("memory://", database=url)
    jobs.each("bench_contacts", status="status", result="answer", name="bench")(work)
    ready.wait()
    with jobs.records("bench") as records:
        records.run()
    calls.put(made)
    jobs.close()


def _fresh(opened: Database, rows: int) -> None:
    opened.run(DROP)
    opened.run(FRESH)
    opened.fill(rows)


def _jobs(url: str) -> Tickoff:
    jobs = Tickoff("memory://", database=url)
    jobs.each("bench_contacts", status="status", result="answer", name="bench")(lambda _row: "x")
    return jobs


def _tenth(worker: Worker, rows: int, tenth: int) -> Tenth:
    begun, before = time.perf_counter(), worker.counts.done
    _until(worker, rows * tenth // 10)
    rate = (worker.counts.done - before) / max(time.perf_counter() - begun, 1e-6)
    return Tenth(rate, _resident())


def _until(worker: Worker, done: int) -> None:
    while worker.counts.done < done:
        time.sleep(0.01)


def _resident() -> int:
    """What the process holds of the machine's memory now, in MiB; Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20
