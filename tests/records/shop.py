"""A user's table of contacts, the application over it, and its servers as processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from tickoff import Tickoff
from tickoff.records.operator import Records
from tickoff.stores.sql.engines import database_of

ROOT = Path(__file__).parents[2]
NAME = "enrich"


@dataclass
class Shop:
    """One database with one table `contacts(id, phone, answer)`, its records tracked in `status`.

    Or `beside`: the states and answers are in the companion of `contacts(id, phone)`.
    """

    url: str
    kind: str
    table: str = field(default_factory=lambda: f"t{uuid4().hex[:12]}")
    opened: list[Tickoff | Records] = field(default_factory=list)
    beside: bool = False

    def __post_init__(self) -> None:
        self.engine = database_of(self.url).open(30.0)

    def stock(self, rows: int) -> None:
        """Make the table with so many rows, and install what records need."""
        answer = "" if self.beside else ", answer varchar(20)"
        self.sql(f"CREATE TABLE {self.table} (id bigint PRIMARY KEY, phone varchar(20){answer})")
        self.insert(range(1, rows + 1))
        with self.records(str) as records:
            records.table.install()

    def insert(self, ids: range) -> None:
        """More rows."""
        rows = [{"id": i, "phone": f"p{i}"} for i in ids]
        columns = sa.table(self.table, sa.column("id"), sa.column("phone"))
        with self.engine.connect() as connection:
            for start in range(0, len(rows), 5000):
                connection.exec_driver_sql("BEGIN")
                connection.execute(sa.insert(columns), rows[start : start + 5000])
                connection.exec_driver_sql("COMMIT")

    def sql(self, text: str) -> Any:
        """Run a statement; its rows if it has any. `{t}` stands for the table that has the states."""
        with self.engine.connect() as connection:
            result = connection.exec_driver_sql(text.replace("{t}", self.keeper))
            return result.all() if result.returns_rows else result.rowcount

    @property
    def keeper(self) -> str:
        """The table that has the states and answers."""
        return f"{self.table}_status" if self.beside else self.table

    def joined(self, *parts: str) -> str:
        """SQL for texts put together."""
        return f"concat({', '.join(parts)})" if self.kind == "mariadb" else f"({' || '.join(parts)})"

    def states(self) -> dict[str, int]:
        """How many rows are in each state."""
        return dict(
            self.sql(
                f"SELECT coalesce(k.status, 'PENDING'), count(*) FROM {self.table} u "
                "LEFT JOIN {t} k ON k.id = u.id GROUP BY coalesce(k.status, 'PENDING')"
            )
        )

    def row(self, key: int) -> Any:
        """Status, answer, attempts, error and claim of a row."""
        return self.sql(
            f"SELECT status, answer, status_attempts, status_error, status_claim FROM {{t}} WHERE id = {key}"
        )[0]

    def jobs(self, work: Callable[..., Any], **options: Any) -> Tickoff:
        """An application with one job over the table."""
        jobs = Tickoff(self.url, namespace=self.table)
        self.opened.append(jobs)
        defaults = {"status": "status", "result": "answer", "backoff": "20ms", "ttl": "5s"}
        defaults["companion"] = self.beside
        jobs.each(self.table, name=NAME, **{**defaults, **options})(work)
        return jobs

    def records(self, work: Callable[..., Any], **options: Any) -> Records:
        """The records of such an application."""
        records = self.jobs(work, **options).records(NAME)
        self.opened.append(records)
        return records

    def can_be_written(self) -> bool:
        """Whether nobody keeps the database, or the leases beside it, from being written to."""
        if self.kind != "sqlite":
            return True
        path = sa.make_url(self.url).database or ""
        return all(_can_be_written(one) for one in (path, f"{path}-tickoff") if Path(one).exists())

    def close(self) -> None:
        """Close all that was opened."""
        for opened in reversed(self.opened):
            opened.close()
        self.engine.dispose()

    @contextmanager
    def server(self, work: str, verb: str = "run", **options: Any) -> Iterator[Server]:
        """A server in a process of its own: it runs a pass of a function of `works`, or serves."""
        server = Server(self, work, verb, options)
        try:
            yield server
        finally:
            server.close()


class Server:
    """A process that works records."""

    def __init__(self, shop: Shop, work: str, verb: str, options: dict[str, Any]) -> None:
        self._shop = shop
        told = {"url": shop.url, "table": shop.table, "work": work, "verb": verb}
        told["options"] = {"companion": shop.beside, **options}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.records.works", json.dumps(told)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.process.pid, number)

    def freeze(self) -> None:
        """Stop it, but not amid a write to SQLite: it would keep the file from all others."""
        self.signal(signal.SIGSTOP)
        while not self._shop.can_be_written():
            self.signal(signal.SIGCONT)
            time.sleep(0.02)
            self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def wait(self, limit: float = 60.0) -> int:
        """Its exit status."""
        return self.process.wait(limit)

    def answer(self, limit: float = 60.0) -> dict[str, Any]:
        """What it said at the end."""
        out, err = self.process.communicate(timeout=limit)
        assert self.process.returncode == 0, err
        said: dict[str, Any] = json.loads(out)
        return said

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def eventually(fact: Callable[[], Any], limit: float = 60.0) -> Any:
    """Wait until it is so; what it was then."""
    deadline = time.monotonic() + limit
    while not (found := fact()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
    return found


def _can_be_written(path: str) -> bool:
    with contextlib.closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True
