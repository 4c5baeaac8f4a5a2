"""What befalls the fleet and its store, when: drawn from a seed before anything begins."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess

from dev.proxy import Mode

from . import member
from .stores import Store, heal

MEMBERS = 8


@dataclass(frozen=True)
class Blow:
    """One thing that happens."""

    at: float
    kind: str
    whom: int
    length: float


def schedule(seed: int, seconds: float, store: Store) -> list[Blow]:
    """The blows of a run: the same for the same seed."""
    chance = random.Random(seed)
    kinds = ["kill", "kill", "stop", "stop"]
    kinds += (
        [f"proxy {mode}" for mode in (Mode.HOLD, Mode.DROP_REPLIES, Mode.REFUSE)] if store.proxies else []
    )
    kinds += ["proxy reset", "proxy delay"] if store.proxies else []
    rare, blows, at, next_rare = list(store.blows), [], 2.0, chance.uniform(4, 8)
    while at < seconds:
        kind = chance.choice(kinds)
        if rare and at > next_rare:
            kind, next_rare = chance.choice(rare), at + chance.uniform(6, 12)
        blows.append(Blow(at, kind, chance.randrange(MEMBERS), chance.uniform(0.3, 2.5)))
        at += chance.uniform(0.15, 0.8)
    return blows


class Fleet:
    """The processes, and what was done to them."""

    def __init__(self, store: Store, part: member.Part) -> None:
        self._store = store
        self._part = part
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["chaos.member", "tickoff.app", "redis", "psycopg", "pymysql"])
        self._running: list[BaseProcess] = []
        self._stopped: dict[int, float] = {}
        self._healing: dict[int, float] = {}
        self._born = 0
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """All of them."""
        self._running = [self._member(i) for i in range(MEMBERS)]

    def suffer(self, blows: list[Blow]) -> None:
        """Go through the schedule, then let all be well."""
        began = time.monotonic()
        for blow in blows:
            while (left := began + blow.at - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))
                self._undo(time.monotonic())
            self.counts[blow.kind] += 1
            self._strike(blow)
        self._undo(float("inf"))
        heal(self._store)
        self._revive()

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
        chance = random.Random(self._part.seed * 1000 + self._born)
        part = replace(
            self._part,
            process=f"member-{self._born}",
            url=self._store.urls[place % len(self._store.urls)],
            seed=self._part.seed * 1000 + self._born,
            skew=chance.choice([0, 0, 5, -5, 3600, -3600]),
        )
        process = self._context.Process(target=member.main, args=(part,), name=part.process, daemon=True)
        process.start()
        return process

    def _strike(self, blow: Blow) -> None:
        victim = self._running[blow.whom]
        proxy = self._store.proxies[blow.whom % 2] if self._store.proxies else None
        match blow.kind.partition(" ")[::2]:
            case ("kill", _):
                self._kill(blow.whom)
            case ("stop", _) if victim.pid is not None and victim.is_alive():
                os.kill(victim.pid, signal.SIGSTOP)
                self._stopped[blow.whom] = time.monotonic() + blow.length
            case ("proxy", "reset") if proxy:
                proxy.reset()
            case ("proxy", "delay") if proxy:
                proxy.delay = blow.length / 5
                self._healing[blow.whom % 2] = time.monotonic() + blow.length
            case ("proxy", mode) if proxy:
                proxy.mode = Mode(mode)
                self._healing[blow.whom % 2] = time.monotonic() + blow.length
            case _ if blow.kind in self._store.blows:
                self._store.blows[blow.kind]()

    def _kill(self, place: int) -> None:
        self._running[place].kill()
        self._running[place].join(10)
        self._stopped.pop(place, None)
        self._running[place] = self._member(place)

    def _undo(self, now: float) -> None:
        """Stopped ones go on, and partitions end, when their time is over."""
        for place in [place for place, until in self._stopped.items() if until <= now]:
            del self._stopped[place]
            os.kill(self._running[place].pid or 0, signal.SIGCONT)
        for place in [place for place, until in self._healing.items() if until <= now]:
            del self._healing[place]
            self._store.proxies[place].mode, self._store.proxies[place].delay = Mode.PASS, 0.0

    def _revive(self) -> None:
        for place, one in enumerate(self._running):
            if not one.is_alive():
                self._running[place] = self._member(place)
