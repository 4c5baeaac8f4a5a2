"""What befalls the fleet and its store, when: drawn from a seed before anything begins."""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass

import redis
import sqlalchemy as sa

from .fleet import Fleet
from .store import Blow, Store, Undo

_OFTEN = (0.2, 1.2)
_LASTING = (0.3, 4.0)


@dataclass(frozen=True)
class Stroke:
    """One thing that happens."""

    at: float
    kind: str
    whom: int
    length: float


def schedule(seed: int, seconds: float, store: Store, members: dict[str, Blow], size: int) -> list[Stroke]:
    """The strokes of a run: the same for the same seed. Half of them hit the members themselves."""
    chance = random.Random(seed)
    strokes, at, next_seldom = [], 2.0, chance.uniform(*store.pace) / 2
    seldom = itertools.cycle(chance.sample(list(store.seldom), len(store.seldom)))
    while at < seconds:
        often = store.often if store.often and chance.random() < 0.5 else members
        kind, lasting = chance.choice(list(often)), _LASTING
        if store.seldom and at > next_seldom:
            kind, lasting, next_seldom = next(seldom), store.lasting, at + chance.uniform(*store.pace)
        strokes.append(Stroke(at, kind, chance.randrange(size), chance.uniform(*lasting)))
        at += chance.uniform(*_OFTEN)
    return strokes


class Nemesis:
    """Strikes by the schedule, and ends in time what it has begun."""

    def __init__(self, fleet: Fleet, store: Store) -> None:
        self._blows = fleet.blows | store.often | store.seldom
        self._undoing: list[tuple[float, int, Undo]] = []
        self._order = itertools.count()
        self.counts: Counter[str] = Counter()

    def strike_all(self, strokes: list[Stroke]) -> None:
        """Go through the schedule, then let all be well."""
        began = time.monotonic()
        for stroke in strokes:
            while (left := began + stroke.at - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))
                self._undo(time.monotonic())
            self._strike(stroke)
        self._undo(float("inf"))

    def _strike(self, stroke: Stroke) -> None:
        try:
            undo = self._blows[stroke.kind](stroke.whom, stroke.length)
        except (redis.RedisError, sa.exc.DBAPIError):  # an earlier blow is in the way of this one
            self.counts[f"{stroke.kind} (in vain)"] += 1
            return
        self.counts[stroke.kind] += 1
        if undo is not None:
            entry = (time.monotonic() + stroke.length, next(self._order), undo)
            heapq.heappush(self._undoing, entry)

    def _undo(self, now: float) -> None:
        while self._undoing and self._undoing[0][0] <= now:
            heapq.heappop(self._undoing)[2]()
