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

from tickoff import Lease, LeaseLost, StaleFence, StoreUnreachable, Tick, Tickoff, TickoffError
from tickoff.errors import FenceHeld
from tickoff.testing.history import History, Said
from tickoff.writes import guard

TTL = 1.0
LOCKS = ("red", "green", "blue")
TICKS = {"quick": 1, "takeover": 3}
"""The jobs, and how often a tick of each may be started."""
PERIODS = {"quick": 1000, "takeover": 2000}


@dataclass(frozen=True)
class Part:
    """What a member is told at its start."""

    process: str
    url: str
    resource: str
    folder: str
    seed: int
    skew: float
    records: bool = False
    """Whether there are records, in the database that is the store."""


class Member:
    """One process."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.history = History(Path(part.folder), part.process)
        self.resource = sa.create_engine(part.resource, connect_args={"timeout": 10})
        self.jobs = Tickoff(part.url, grace="1s")
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
            self._tick("quick", tick, 0.0)

        @jobs.every("2s", ttl=TTL, recover="now", on_outage="wait")
        def takeover(tick: Tick) -> None:
            self._tick("takeover", tick, 0.3)

        @jobs.every("3s", ttl=TTL)
        async def blocking() -> None:
            await asyncio.sleep(0.05)
            time.sleep(0.5)  # the loop is blocked on purpose

        if self.part.records:
            self._define_records()

    def _define_records(self) -> None:
        @self.jobs.each(
            "contacts",
            status="status",
            result="answer",
            ttl="2s",
            attempts=1000,
            backoff="50ms",
            concurrency=4,
        )
        def enrich(row: Any) -> str:
            time.sleep(0.2)
            return f"a{row.id}"

    def _tick(self, job: str, tick: Tick, length: float) -> None:
        at = int(tick.at.timestamp() * 1000)
        self.history.note("start", Said.OK, job, tick=at, fence=tick.fence, attempt=tick.attempt)
        time.sleep(length)
        self._write(job, tick.lease)
        self.history.note("end", Said.OK, job, tick=at, fence=tick.fence, attempt=tick.attempt)

    def _race_on(self, seed: int) -> None:
        chance = random.Random(seed)
        while True:
            time.sleep(chance.uniform(0, 0.05))
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
        signal.alarm(
            10
        )  # a thread may have been amid the resource's SQLite, whose locks we then inherit taken
        try:
            self.history = History(Path(self.part.folder), process)
            self.resource = sa.create_engine(self.part.resource, poolclass=sa.NullPool)
            for _ in range(3):
                with contextlib.suppress(TickoffError):
                    self._race(chance.choice(LOCKS), chance)
        finally:
            os._exit(0)


def skew_clock(seconds: float) -> None:
    """Make this process's wall clock wrong."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)


def main(part: Part) -> None:
    """Be this member until killed."""
    logging.basicConfig(filename=Path(part.folder) / f"{part.process}.log", level=logging.INFO)
    skew_clock(part.skew)
    if os.environ.get("TICKOFF_PLANT"):
        from tests.planted import apply_from_environment

        apply_from_environment()
    Member(part).run()
