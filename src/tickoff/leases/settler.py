"""Ticks that ended are settled in batches, behind the work; what the store does not take is tried again."""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..model import Ending
from ..stores.base import LeaseStore
from ..work import End
from .knowledge import Knowledge
from .lease import Lease

_log = logging.getLogger("tickoff")

_RETRY = 1.0

_BREATH = 3.0
"""After a trip it rests so many times as long as that took: what ends meanwhile travels together."""

_WAY = 0.05
"""Seconds for which it makes way for a race of a rush, which is waited for; a settlement is not."""

_LONGEST = 0.5
"""Seconds after which what ended is settled, whatever else goes on."""

_SHARE_OF_TTL = 0.1
_RETRY_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Settling:
    """A tick to be settled, how it ended, and until when it is worth trying."""

    lease: Lease
    end: End
    attempts: int
    give_up: float

    def ending(self) -> Ending:
        """As the store takes it."""
        return Ending(
            hold=self.lease.hold(), outcome=self.end.outcome, error=self.end.error, attempts=self.attempts
        )


class Settler:
    """Settles the ticks of one store in a thread of its own."""

    def __init__(self, store: LeaseStore, knowledge: Knowledge) -> None:
        self._store = store
        self._knowledge = knowledge
        self._loop = Loop("tickoff-settler", self.step)
        self.after_fork()

    def after_fork(self) -> None:
        """A child holds nothing, so it has nothing to settle."""
        self._guard = threading.Lock()
        self._pending: list[Settling] = []
        self._rested = 0.0
        self._latest = math.inf
        self._settled = threading.Condition(self._guard)
        self._loop.after_fork()

    def settle(self, lease: Lease, end: End, attempts: int) -> None:
        """Settle soon, and long before the lease runs out; does no I/O."""
        now = elapsed()
        with self._guard:
            self._pending.append(Settling(lease, end, attempts, now + _RETRY_FOR))
            self._latest = min(self._latest, now + min(_LONGEST, lease.ttl * _SHARE_OF_TTL))
        self._loop.wake_by(self._due)

    def make_way(self) -> None:
        """A race is about to be run, which somebody waits for: let it go first."""
        self._rested = max(self._rested, elapsed() + _WAY)

    def step(self, now: float) -> float | None:
        """Settle all that ended since the last time, in one trip; when to try again."""
        if self._pending and now < self._due:
            return self._due
        with self._guard:
            batch, self._latest = list(self._pending), math.inf
        if not batch:
            return None
        try:
            answers = self._store.settle([one.ending() for one in batch])
        except StoreUnreachable as error:
            self._drop([one for one in batch if one.give_up <= now], error)
            return now + _RETRY
        done = elapsed()
        self._rested = done + min((done - now) * _BREATH, _LONGEST)
        for one, answer in zip(batch, answers, strict=True):
            self._knowledge.learn(answer.entry)
            one.lease.settled(ours=answer.ok)
        self._forget(batch)
        return None

    def flush(self, limit: float) -> bool:
        """Wait until everything is settled, for so many seconds at most; whether it is."""
        self._rested = self._latest = 0.0
        self._loop.wake_by(0.0)
        with self._settled:
            return self._settled.wait_for(lambda: not self._pending, limit)

    @property
    def _due(self) -> float:
        """When to settle: soon, but not in the way of races, unless that would be late."""
        return min(self._rested, self._latest)

    def close(self) -> None:
        """End the thread."""
        self._loop.stop()

    def _drop(self, late: list[Settling], error: StoreUnreachable) -> None:
        for one in late:
            _log.error(
                "%s ended %s, but the store could not be told: %s", one.lease.name, one.end.outcome, error
            )
        self._forget(late)

    def _forget(self, done: list[Settling]) -> None:
        with self._settled:
            gone = {id(one) for one in done}
            self._pending = [one for one in self._pending if id(one) not in gone]
            self._settled.notify_all()
