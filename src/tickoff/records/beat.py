"""Twice a second a worker reads whether it is paused, and once it posts what it did."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..names import owner
from ..outage import Outage
from ..stores.base import LeaseStore
from .hand import Hand
from .job import RecordJob
from .progress import LAST_LIFE, LIFE, Rate, Report
from .provider import Provider
from .steering import Steered, Steering
from .tally import Tally

_log = logging.getLogger("tickoff")

_EVERY = 0.5
_POSTS = 2
"""Beats between two reports."""


class Beat:
    """A worker's word to the others, and theirs to it. Without an answer, the last word counts."""

    def __init__(
        self,
        job: RecordJob,
        board: str,
        store: LeaseStore,
        hand: Hand,
        tally: Tally,
        provider: Provider,
        obey: Callable[[Steered], None],
    ) -> None:
        self._job = job
        self._board = board
        self._store = store
        self._hand = hand
        self._tally = tally
        self._provider = provider
        self._obey = obey
        self._loop = Loop(f"tickoff-beat-{job.name}", self.step)
        hand.on_growth = self.hurry
        self.steering = Steering(self._board, self._store)
        self._rate = Rate()
        self._post_at = -math.inf
        self._asked: str | None = None
        self._outage = Outage()

    def start(self) -> None:
        """Beat from now on, the first time at once."""
        self._loop.wake_by(elapsed())

    def pause(self, why: str) -> None:
        """The work asked for a pause: here at once, everywhere with the next beat; safe from any thread."""
        self._asked = why
        self._obey(Steered(paused=True, by=owner(), why=why))
        self._loop.wake_by(elapsed())

    def hurry(self) -> None:
        """The others have to be told something at once; safe from any thread."""
        self._loop.wake_by(elapsed())

    def step(self, now: float) -> float | None:
        """Say, hear and obey; when to come back."""
        try:
            self._step(now)
        except StoreUnreachable as error:
            self._outage.met("%s: working on with the last word heard: %s", self._job.name, error)
        else:
            self._outage.over()
        return now + _EVERY

    def stop(self) -> None:
        """Say for the last time what was done; nobody counts on this server any more."""
        self._loop.stop()
        last = Report(owner(), self._tally.counts)
        try:
            self._store.post(self._board, owner(), last.text(), LAST_LIFE)
        except StoreUnreachable:
            _log.debug("%s: the note before the last stays up until its life ends", self._job.name)

    def _step(self, now: float) -> None:
        if self._asked is not None:
            self.steering.pause(self._asked)
            self._asked = None
        self._obey(self.steering.read())
        if now >= self._post_at or self._hand.stake.is_growing:
            self._post(now)
        self._provider.exchange(elapsed())

    def _post(self, now: float) -> None:
        """Tell what is done, and what may be lost: that is told before it is risked."""
        report = self.report(now)
        told = self._store.post(self._board, owner(), report.text(), LIFE)
        self._hand.told(report.repeat - self._job.at_once)
        self._provider.time.learn(told, now, elapsed())
        self._post_at = now + _EVERY * _POSTS

    def report(self, now: float) -> Report:
        """What is to be said of this server."""
        counts = self._tally.counts
        return Report(
            owner(),
            counts,
            in_flight=self._hand.held,
            rate=self._rate.learn(counts.done + counts.failed, now),
            repeat=self._job.at_once + self._hand.at_stake,
            held=self._provider.why(now),
        )
