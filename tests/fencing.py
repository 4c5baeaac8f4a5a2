"""What other processes do in the tests of guarded transactions, and a holder that can be stopped."""

from __future__ import annotations

import os
import random
import signal
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from tests.processes import forked
from tickoff import Lease, StaleFence, Tickoff, writes

_fence = sa.table("tickoff_fence", sa.column("name"), sa.column("fence"))

HIGH = sa.select(_fence.c.fence).where(_fence.c.name == sa.bindparam("name"))
"""The fence that a database has seen of a name."""

_log = sa.Table(
    "guarded",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("fence", sa.BigInteger, nullable=False),
)


def make_log(engine: sa.Engine) -> None:
    """Make the table that guarded transactions write to; on SQLite readers must not stop writers."""
    with engine.begin() as db:
        if engine.name == "sqlite":
            db.exec_driver_sql("PRAGMA journal_mode = WAL")
        _log.create(db)


def log(db: sa.Connection, fence: int) -> None:
    """Write what the guard protects."""
    db.execute(_log.insert().values(fence=fence))


def logged(engine: sa.Engine) -> list[int]:
    """The fences whose writes were committed, in their order."""
    with engine.connect() as db:
        return list(db.scalars(sa.select(_log.c.fence).order_by(_log.c.id)))


def first_guard(url: str, number: int, gate: Any, results: Any) -> None:
    """Guard a transaction at the same moment as others."""
    engine = sa.create_engine(url, connect_args={"timeout": 60} if url.startswith("sqlite") else {})
    with engine.connect():
        gate.wait(60)
    try:
        with engine.begin() as db:
            writes.guard(db, f"name-{number}", number, 60.0)
        results.put("guarded")
    except Exception as error:  # noqa: BLE001 - the test tells what it was
        results.put(repr(error))


def guard_at_random(url: str, seed: int, results: Any) -> None:
    """Guard with fences that mostly grow, and log what was accepted; say how many were and were not."""
    engine = sa.create_engine(url, connect_args={"timeout": 60} if url.startswith("sqlite") else {})
    dice, accepted, refused = random.Random(seed), 0, 0
    for step in range(20):
        fence = step * 10 + dice.randrange(60)
        try:
            with engine.begin() as db:
                writes.guard(db, "contended", fence, 60.0)
                log(db, fence)
            accepted += 1
        except StaleFence:
            refused += 1
    results.put((accepted, refused))


class Holder:
    """A process that wins a name and writes under its fence, as it is told."""

    def __init__(self, store: str, engine: sa.Engine, name: str, ttl: float) -> None:
        context = forked()
        self._pipe, theirs = context.Pipe()
        url = engine.url.render_as_string(hide_password=False)
        self._process = context.Process(target=_hold, args=(store, url, name, ttl, theirs), daemon=True)
        self._process.start()
        self.fence: int = self._answer()

    def do(self, what: str) -> Any:
        """`write`, or `begin` and `commit`; the answer is the error's name, or `ok`."""
        self._pipe.send(what)
        return self._answer()

    def freeze(self) -> None:
        """Stop it where it stands."""
        os.kill(self._process.pid or 0, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self._process.pid or 0, signal.SIGCONT)

    def _answer(self) -> Any:
        assert self._pipe.poll(60), "the holder does not answer"
        return self._pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()
        self._process.kill()
        self._process.join()


def _hold(store: str, url: str, name: str, ttl: float, pipe: Connection[Any, Any]) -> None:
    jobs, engine = Tickoff(store), sa.create_engine(url)
    with engine.connect():  # what is slow the first time is done before the lease begins
        lease = jobs.race(name, ttl=ttl)
    assert isinstance(lease, Lease)
    pipe.send(lease.fence)
    while True:
        told = pipe.recv()
        try:
            with lease.transaction(engine) as db:
                log(db, lease.fence)
                if told == "begin":
                    pipe.send("begun")
                    pipe.recv()
            pipe.send("ok")
        except Exception as error:  # noqa: BLE001 - the test tells what it was
            pipe.send(type(error).__name__)
