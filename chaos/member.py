"""A server under chaos: it serves ticks and records, races for locks, and writes all of it down."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tickoff import Defer, Lease, LeaseLost, StaleFence, StoreUnreachable, Tick, Tickoff, TickoffError
from tickoff.errors import FenceHeld
from tickoff.names import owner
from tickoff.testing.history import History, Said
from tickoff.writes import guard

from . import clock, ground

TTL = 2.0
LOCKS = ("red", "green", "blue")
TICKS = {"quick": 1, "takeover": 3, "blocking": 1}
"""The jobs, and how often a tick of each may be started."""
FAULT = "drawn by lot"
"""What some calls raise."""
OFTEN_ENOUGH = {"quick": 8.0, "takeover": 8.0, "blocking": 16.0}
"""Seconds in which each job has run to its end once, when all is well but for a busy machine."""
LONG = 4.0
BLOCKED = 4.5
"""Seconds for which a job blocks the event loop: longer than its lease lasts unrenewed."""


@dataclass(frozen=True)
class Part:
    """What a member is told at its start."""

    resource: str
    """What the leases protect."""
    folder: str
    """Where it notes what it sees."""
    seed: int
    process: str = ""
    url: str = ""
    database: str | None = None
    """Where the records are; None: in the store."""
    network: str = ""
    """The machine it runs on; empty: this one."""
    skew: float = 0.0


class Member:
    """One process."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.history = History(Path(part.folder), part.process)
        self.resource = open_resource(part.resource)
        self.jobs = Tickoff(part.url, database=part.database, grace="1s")
        self._define()

    def run(self) -> None:
        """Serve and race until killed; started anew, as a supervisor does, while the store is away."""
        while True:
            with contextlib.suppress(StoreUnreachable):
                self._serve()
            time.sleep(0.2)

    def _serve(self) -> None:
        with self.jobs:
            for i in range(2):
                threading.Thread(target=self._race_on, args=(self.part.seed * 10 + i,), daemon=True).start()
            self._fork_now_and_then(random.Random(self.part.seed))

    def _define(self) -> None:
        jobs = self.jobs

        @jobs.every("1s", ttl=TTL, on_outage="skip")
        def quick(tick: Tick) -> None:
            self._tick(tick, 0.0)

        @jobs.every("2s", ttl=TTL, recover="now", on_outage="wait")
        def takeover(tick: Tick) -> None:
            self._tick(tick, 0.3)

        @jobs.every("6s", ttl=LONG)
        async def blocking(tick: Tick) -> None:
            self._note("start", tick)
            await asyncio.sleep(0.05)
            time.sleep(BLOCKED)  # the loop is blocked on purpose
            tick.lease.check()
            self._note("end", tick)

        self._define_records()

    def _define_records(self) -> None:
        @self.jobs.each(
            "contacts",
            status="status",
            result="answer",
            ttl="4s",
            attempts=1000,
            backoff="50ms",
            concurrency=4,
        )
        def enrich(row: Any) -> str:
            self.history.note("call", Said.OK, "enrich", key=str(row.id))
            time.sleep(0.2)
            self._fail_now_and_then(str(row.id))
            return f"a{row.id} {owner()}"

    def _fail_now_and_then(self, key: str) -> None:
        """Some calls are the record's fault, and are charged; some are the provider's."""
        drawn = random.random()
        if drawn < 0.04:
            self.history.note("failed", Said.OK, "enrich", key=key)
            raise ValueError(FAULT)
        if drawn < 0.06:
            raise Defer("50ms", "not now")

    def _tick(self, tick: Tick, length: float) -> None:
        self._note("start", tick)
        time.sleep(length)
        self._write(tick.lease.name, tick.lease)
        self._note("end", tick)

    def _note(self, verb: str, tick: Tick) -> None:
        at = int(tick.at.timestamp() * 1000)
        self.history.note(verb, Said.OK, tick.lease.name, tick=at, fence=tick.fence, attempt=tick.attempt)

    def _race_on(self, seed: int) -> None:
        chance = random.Random(seed)
        while True:
            time.sleep(chance.uniform(0, 0.5))
            with contextlib.suppress(StoreUnreachable):
                self._race(chance.choice(LOCKS), chance)

    def _race(self, name: str, chance: random.Random) -> None:
        with self.history.asking("race", name) as call:
            lease = self.jobs.race(name, ttl=TTL)
            if not isinstance(lease, Lease):
                call.said(Said.FAIL)
                return
            call.said(Said.OK, token=lease.token, fence=lease.fence)
        time.sleep(chance.choice([0, 0, 0.01, 0.1]))
        self._write(name, lease, trusting=chance.random() < 0.5)
        with self.history.asking("release", name, token=lease.token, fence=lease.fence) as call:
            call.said(Said.OK if lease.release() else Said.FAIL)

    def _write(self, name: str, lease: Lease, *, trusting: bool = False) -> None:
        """A fenced write. A trusting one asks no clock of ours: only the resource can refuse it."""
        with self.history.asking("write", name, fence=lease.fence, token=lease.token) as call:
            try:
                with self.resource.connect() as db:
                    db.exec_driver_sql("BEGIN")
                    guard(db, lease.name, lease.fence, 5.0) if trusting else lease.guard(db)
                    row = {"name": lease.name, "fence": lease.fence, "process": self.part.process}
                    db.execute(
                        sa.text(
                            "INSERT INTO accepted (name, fence, process) VALUES (:name, :fence, :process)"
                        ),
                        row,
                    )
                    db.commit()
                call.said(Said.OK)
            except (StaleFence, LeaseLost):
                call.said(Said.FAIL)
            except (FenceHeld, sa.exc.OperationalError):
                return  # the resource was busy: unknown

    def _fork_now_and_then(self, chance: random.Random) -> None:
        """A child has none of its parent's leases, and connections of its own."""
        parent = os.getppid()
        for i in range(10_000):
            time.sleep(chance.uniform(1, 4))
            if os.getppid() != parent:
                os._exit(0)  # nobody is left who would end us
            pid = os.fork()
            if pid == 0:
                self._be_a_child(f"{self.part.process}-child-{i}", chance)
            time.sleep(0.5)
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    os.kill(pid, 9)
                    os.waitpid(pid, 0)

    def _be_a_child(self, process: str, chance: random.Random) -> None:
        ground.die_with_parent()
        signal.alarm(
            10
        )  # a thread may have been amid the resource's SQLite, whose locks we then inherit taken
        try:
            self.history = History(Path(self.part.folder), process)
            self.resource = open_resource(self.part.resource)
            for _ in range(3):
                with contextlib.suppress(TickoffError):
                    self._race(chance.choice(LOCKS), chance)
        finally:
            os._exit(0)


def open_resource(url: str) -> sa.Engine:
    """What is protected is quick: it is not on trial, so it need not survive a power cut."""
    engine = sa.create_engine(url, connect_args={"timeout": 10})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous=OFF")

    return engine


def main(part: Part) -> None:
    """Be this member until killed."""
    folder = Path(part.folder)
    clock.obey(folder / f"{part.process}.clock", part.skew)
    if part.network:
        ground.move_into(part.network)
    _log_to(folder / f"{part.process}.log")
    if os.environ.get("TICKOFF_PLANT"):
        from tests.planted import apply_from_environment

        apply_from_environment()
    Member(part).run()


def _log_to(file: Path) -> None:
    """Under the clock of the histories: the wall's is wrong."""
    handler = logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(at).3f %(threadName)s %(levelname)s %(message)s"))
    handler.addFilter(lambda record: setattr(record, "at", time.monotonic()) or True)
    logging.basicConfig(handlers=[handler], level=logging.INFO)
