"""What this process has learnt of names, to be told to a store that may have forgotten."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ..ground.clocks import elapsed
from ..model import UNSCHEDULED_LIFE, Answer, Entry, Known

_NAMES_KEPT = 10_000

_LIFE = UNSCHEDULED_LIFE / 1000 - 24 * 3600
"""Seconds after which knowledge is dropped: before the store drops the name itself, else it would look
as if the store had forgotten."""

_NOTHING = Known()


class Knowledge:
    """The names used last, and the highest fence and marks seen of each."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: OrderedDict[str, tuple[float, Known]] = OrderedDict()
        self._heard: dict[str, Answer] = {}

    def of(self, name: str) -> Known:
        """What is known of a name."""
        with self._guard:
            self._take_in(name)
            learnt, known = self._known.get(name, (0.0, _NOTHING))
        return known if known is _NOTHING or elapsed() - learnt < _LIFE else _NOTHING

    def learn(self, entry: Entry) -> None:
        """Take in what a store has just said of a name."""
        with self._guard:
            self._take_in(entry.name)
            self._learn(entry)

    def hear(self, name: str, answer: Answer) -> None:
        """The same, but read only when the name is next asked for: a rush of wins is not held up by it."""
        with self._guard:
            self._take_in(name)
            self._heard[name] = answer
            if len(self._heard) > _NAMES_KEPT:
                self._take_in(next(iter(self._heard)))

    def _take_in(self, name: str) -> None:
        heard = self._heard.pop(name, None)
        if heard is not None:
            self._learn(heard.entry)

    def _learn(self, entry: Entry) -> None:
        _, known = self._known.get(entry.name, (0.0, _NOTHING))
        self._known[entry.name] = (elapsed(), _merged(known, entry))
        self._known.move_to_end(entry.name)
        if len(self._known) > _NAMES_KEPT:
            self._known.popitem(last=False)

    def stale(self, name: str, high: int) -> None:
        """Take in a fence that a user's database has seen: the store may have forgotten it."""
        self.learn(Entry(name=name, fence=high))

    def after_fork(self) -> None:
        """Keep what is known; only the lock may be held by a thread that is gone."""
        self._guard = threading.Lock()


def _merged(known: Known, entry: Entry) -> Known:
    later = entry if entry.steered > known.steered else known
    return Known(
        fence=max(known.fence, entry.fence),
        decided=max(known.decided, entry.decided),
        finished=max(known.finished, entry.finished),
        since=max(known.since, entry.since),
        ttl=entry.ttl or known.ttl,
        steered=later.steered,
        paused=later.paused,
        paused_by=later.paused_by,
        paused_why=later.paused_why,
    )
