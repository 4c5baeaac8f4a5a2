"""Records with a function that does nothing: a bare claim-and-complete loop over the driver, and Tickoff."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql

from bench import cpu
from bench.ratios import Contender
from tickoff import Tickoff
from tickoff.records.worker import Worker

BARE = "bare loop, 500 at a time"
BARE_LARGE = "bare loop, 1,000 at a time"
OURS = "Tickoff, a record per call"
OURS_ASYNC = "Tickoff, a record per call, async def"
OURS_BATCHED = "Tickoff, 500 records per call"

BATCH, LARGE = 500, 1000
"""What one call gets, and what a worker claims at most."""

_TABLE = (
    "CREATE TABLE bench_contacts (id bigint PRIMARY KEY, phone varchar(20), answer varchar(20), "
    "status varchar(20) NOT NULL DEFAULT 'PENDING', claim varchar(72), until {})"
)
FRESH = "CREATE TABLE bench_contacts (id bigint PRIMARY KEY, phone varchar(20), answer varchar(20))"
DROP = "DROP TABLE IF EXISTS bench_contacts"

Answer = Callable[[Any], str]

Loop = Callable[[], int]
"""One claim and its completion; how many records it did."""


@dataclass
class Cost:
    """What one run took."""

    records: int
    seconds: float = 0.0
    own: float = 0.0
    """Seconds of CPU time of our process…"""
    server: float = 0.0
    """…and of the database's."""
    whole: float = 0.0
    """Seconds for a record when the start counts."""


@dataclass
class Costs:
    """What the runs of each contender took; the database's process, where it is one."""

    server: int | None
    runs: dict[str, list[Cost]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def counted(self, label: str, records: int) -> Iterator[Cost]:
        """What is done within is a run of so many records."""
        cost = Cost(records)
        begun, own, server = time.perf_counter(), cpu.own(), self._server()
        yield cost
        cost.seconds = time.perf_counter() - begun
        cost.own, cost.server = cpu.own() - own, self._server() - server
        self.runs[label].append(cost)

    def _server(self) -> float:
        return 0.0 if self.server is None else cpu.of_server(self.server)


class Database:
    """Statements on one connection of the driver's, and the table filled anew for each run."""

    def __init__(self, url: str, server: int | None = None) -> None:
        self.url = url
        self.costs = Costs(server)

    def run(self, sql: str) -> None:
        raise NotImplementedError

    def fill(self, rows: int) -> None:
        raise NotImplementedError

    def loop(self, answer: Answer, size: int) -> Loop:
        raise NotImplementedError

    def contenders(self) -> list[Contender]:
        """The bare loops first."""
        return [
            Contender(BARE, lambda rows: self._bare(BARE, rows, BATCH)),
            Contender(BARE_LARGE, lambda rows: self._bare(BARE_LARGE, rows, LARGE)),
            Contender(OURS, lambda rows: self._ours(OURS, rows, _answer)),
            Contender(OURS_ASYNC, lambda rows: self._ours(OURS_ASYNC, rows, _answer_async)),
            Contender(OURS_BATCHED, lambda rows: self._ours(OURS_BATCHED, rows, _answers, per_call=BATCH)),
        ]

    def _bare(self, label: str, rows: int, size: int) -> float:
        self.run(DROP)
        self.run(_TABLE.format(self.instant))
        self.fill(rows)
        once, left = self.loop(_answer, size), rows
        with self.costs.counted(label, rows) as cost:
            while left:
                left -= once()
        cost.whole = cost.seconds / rows
        return cost.seconds

    def _ours(self, label: str, rows: int, work: Callable[..., Any], **options: Any) -> float:
        """Seconds at the rate it has after the first tenth: by then it claims as much as it will."""
        self.run(DROP)
        self.run(FRESH)
        self.fill(rows)
        jobs = Tickoff("memory://", database=self.url)
        jobs.each("bench_contacts", status="status", result="answer", name="bench", **options)(work)
        with jobs.records("bench") as records:
            records.table.install()
            worker = records.worker()
            begun = time.perf_counter()
            worker.start()
            before = _until(worker, rows // 10)
            with self.costs.counted(label, rows - before) as cost:
                _until(worker, rows)
            cost.whole = (time.perf_counter() - begun) / rows
            worker.stop()
        jobs.close()
        return cost.seconds * rows / cost.records

    instant = "timestamp"


def _until(worker: Worker, done: int) -> int:
    """Wait until so many are done; how many are."""
    while worker.counts.done < done:
        time.sleep(0.01)
    return worker.counts.done


def _answer(_row: Any) -> str:
    return "x"


async def _answer_async(_row: Any) -> str:
    return "x"


def _answers(rows: Sequence[Any]) -> list[str]:
    return ["x" for _ in rows]


class Postgres(Database):
    """psycopg; one statement to claim, one to complete, by plans that walk the key."""

    instant = "timestamptz"
    fillfactor = 100
    """How far pages are filled that are written after the rows are there."""

    def __init__(self, url: str, server: int | None = None) -> None:
        super().__init__(url, server)
        self.connection = psycopg.connect(url, autocommit=True)
        self.run("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")

    def run(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def fill(self, rows: int) -> None:
        self.run(
            f"INSERT INTO bench_contacts (id, phone) SELECT i, 'p' || i FROM generate_series(1, {rows}) i"
        )
        self.run("VACUUM ANALYZE bench_contacts")
        self.run(f"ALTER TABLE bench_contacts SET (fillfactor = {self.fillfactor})")

    def loop(self, answer: Answer, size: int) -> Loop:
        floor, claim = 0, _PG_CLAIM.replace(b"LIMIT 500", b"LIMIT %d" % size)

        def once() -> int:
            nonlocal floor
            token = secrets.token_hex(16)
            rows = self.connection.execute(claim, (floor, token)).fetchall()
            floor = max(row[0] for row in rows)
            answers = [answer(row) for row in rows]
            self.connection.execute(_PG_COMPLETE, ([row[0] for row in rows], answers, token))
            return len(rows)

        return once


_PG_CLAIM = (
    b"WITH picked AS (SELECT id FROM bench_contacts WHERE status = 'PENDING' AND id > %s ORDER BY id "
    b"LIMIT 500 FOR UPDATE SKIP LOCKED) UPDATE bench_contacts c SET status = 'IN_FLIGHT', claim = %s, "
    b"until = now() + interval '5 min' FROM picked WHERE c.id = picked.id RETURNING c.id, c.phone"
)
_PG_COMPLETE = (
    b"UPDATE bench_contacts c SET status = 'DONE', answer = d.answer, until = now() "
    b"FROM unnest(%s::bigint[], %s::text[]) AS d (id, answer) "
    b"WHERE c.id = d.id AND c.status = 'IN_FLIGHT' AND c.claim = %s"
)


class MariaDB(Database):
    """PyMySQL; rows locked and marked in one transaction, completed one by one in another."""

    instant = "datetime(6)"

    def __init__(self, url: str, server: int | None = None) -> None:
        super().__init__(url, server)
        parts = urlsplit(url)
        options = {"host": parts.hostname, "port": parts.port, "user": parts.username}
        self.connection = pymysql.connect(**options, database=parts.path.strip("/"), autocommit=True)
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def fill(self, rows: int) -> None:
        self.run(f"INSERT INTO bench_contacts (id, phone) SELECT seq, concat('p', seq) FROM seq_1_to_{rows}")

    def loop(self, answer: Answer, size: int) -> Loop:
        floor, pick = 0, _MY_PICK.replace("LIMIT 500", f"LIMIT {size}")

        def once() -> int:
            nonlocal floor
            token = secrets.token_hex(16)
            with self.connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(pick, (floor,))
                rows = cursor.fetchall()
                ids = [row[0] for row in rows]
                cursor.execute(_MY_CLAIM, (token, ids))
                cursor.execute("COMMIT")
                floor = ids[-1]
                cursor.execute("BEGIN")
                cursor.executemany(_MY_COMPLETE, [(answer(row), row[0], token) for row in rows])
                cursor.execute("COMMIT")
            return len(rows)

        return once


_MY_PICK = (
    "SELECT id, phone FROM bench_contacts WHERE status = 'PENDING' AND id > %s ORDER BY id LIMIT 500 "
    "FOR UPDATE SKIP LOCKED"
)
_MY_CLAIM = (
    "UPDATE bench_contacts SET status = 'IN_FLIGHT', claim = %s, "
    "until = utc_timestamp(6) + interval 5 minute WHERE id IN %s"
)
_MY_COMPLETE = (
    "UPDATE bench_contacts SET status = 'DONE', answer = %s, until = utc_timestamp(6) "
    "WHERE id = %s AND status = 'IN_FLIGHT' AND claim = %s"
)


class SQLite(Database):
    """The standard library in WAL mode, every commit on disk."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")

    def run(self, sql: str) -> None:
        self.connection.execute(sql)

    def fill(self, rows: int) -> None:
        self.run("BEGIN")
        inserted = ((i, f"p{i}") for i in range(1, rows + 1))
        self.connection.executemany("INSERT INTO bench_contacts (id, phone) VALUES (?, ?)", inserted)
        self.run("COMMIT")

    def loop(self, answer: Answer, size: int) -> Loop:
        floor, pick = 0, _LITE_PICK.replace("LIMIT 500", f"LIMIT {size}")

        def once() -> int:
            nonlocal floor
            token, execute = secrets.token_hex(16), self.connection.execute
            execute("BEGIN IMMEDIATE")
            rows = execute(pick, (floor,)).fetchall()
            self.connection.executemany(_LITE_CLAIM, [(token, row[0]) for row in rows])
            execute("COMMIT")
            floor = rows[-1][0]
            execute("BEGIN IMMEDIATE")
            self.connection.executemany(_LITE_COMPLETE, [(answer(row), row[0], token) for row in rows])
            execute("COMMIT")
            return len(rows)

        return once


_LITE_PICK = "SELECT id, phone FROM bench_contacts WHERE status = 'PENDING' AND id > ? ORDER BY id LIMIT 500"
_LITE_CLAIM = (
    "UPDATE bench_contacts SET status = 'IN_FLIGHT', claim = ?, until = datetime('now', '+5 minutes') "
    "WHERE id = ?"
)
_LITE_COMPLETE = (
    "UPDATE bench_contacts SET status = 'DONE', answer = ?, until = datetime('now') "
    "WHERE id = ? AND status = 'IN_FLIGHT' AND claim = ?"
)
