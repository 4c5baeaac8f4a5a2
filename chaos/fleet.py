"""The processes of a run: started, killed, stopped, their clocks set, and started again."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from . import clock, member
from .store import Blow, Store, Undo

_WRONG = (0, 0, 5, -5, 3600, -3600)
"""Seconds by which wall clocks are wrong."""


class Fleet:
    """So many members, each at its place."""

    def __init__(self, store: Store, part: member.Part, size: int) -> None:
        self.size = size
        self._store = store
        self._part = part
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["chaos.member", "tickoff.app", "redis", "psycopg", "pymysql"])
        self._running: list[BaseProcess] = []
        self._born = 0
        self._chance = random.Random(part.seed)

    @property
    def blows(self) -> dict[str, Blow]:
        """What can be done to a member."""
        stepping: dict[str, Blow] = {"clock set": self._set_clock} if self._library else {}
        return {"kill": self._kill, "stop": self._stop, **stepping}

    def start(self) -> None:
        """All of them."""
        with _environment(self._library):  # of the process that forks them
            forkserver.ensure_running()
        self._running = [self._member(i) for i in range(self.size)]

    @property
    def _library(self) -> dict[str, str]:
        return clock.faketime() if self._store.own_clock else {}

    def check_alive(self) -> list[str]:
        """Those that died of something else than us."""
        return [
            f"{one.name} ended by itself with {one.exitcode}" for one in self._running if not one.is_alive()
        ]

    def end(self) -> None:
        """Kill them all."""
        for one in self._running:
            one.kill()
        for one in self._running:
            one.join(10)

    def _member(self, place: int) -> BaseProcess:
        self._born += 1
        machines = self._store.machines
        part = replace(
            self._part,
            process=f"member-{self._born}",
            url=self._store.urls[place % len(self._store.urls)],
            database=self._store.database,
            network=machines[place % len(machines)].path if machines else "",
            seed=self._part.seed * 1000 + self._born,
            skew=self._chance.choice(_WRONG),
        )
        process = self._context.Process(target=member.main, args=(part,), name=part.process, daemon=True)
        process.start()
        return process

    def _kill(self, place: int, _length: float) -> None:
        self._running[place].kill()
        self._running[place].join(10)
        self._running[place] = self._member(place)

    def _stop(self, place: int, _length: float) -> Undo | None:
        victim = self._running[place]
        if victim.pid is None or not victim.is_alive():
            return None
        os.kill(victim.pid, signal.SIGSTOP)
        return lambda: _go_on(victim)

    def _set_clock(self, place: int, _length: float) -> None:
        file = Path(self._part.folder) / f"{self._running[place].name}.clock"
        clock.set_wrong(file, self._chance.choice(_WRONG))


def _go_on(victim: BaseProcess) -> None:
    if victim.pid is not None and victim.is_alive():
        os.kill(victim.pid, signal.SIGCONT)


@contextmanager
def _environment(more: dict[str, str]) -> Iterator[None]:
    former = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(former)
