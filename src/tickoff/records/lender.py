"""Borrows calls from the store: a share of each window when it begins, and more of what others leave."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..lending import Loan
from ..outage import Outage
from ..stores.base import LeaseStore
from .purse import Purse
from .rate import Pace

_ASKS = 4
"""A window is asked for so often, as long as more is wanted and there is some."""

_COUNT_EVERY = 2.0
"""Seconds between two counts of the servers."""

_GROWTH = 1.25
_AFTER_OUTAGE = 0.5


class Lender:
    """Keeps the purse filled while calls are wanted."""

    def __init__(
        self, job: str, pace: Pace, key: str, store: LeaseStore, count: Callable[[], int], purse: Purse
    ) -> None:
        self._job = job
        self._pace = pace
        self._key = key
        self._store = store
        self._count = count
        self._purse = purse
        self._loop = Loop(f"tickoff-rate-{job}", self.step)
        self._ends = -math.inf
        self._exhausted = False
        self._fleet = 1
        self._count_at = -math.inf
        self._outage = Outage()
        self.on_loan: Callable[[], None] = _nobody

    def wanted(self) -> None:
        """A call is wanted and none is left: ask, unless the window has no more."""
        self._loop.wake_by(max(elapsed(), self._ends) if self._exhausted else elapsed())

    def stop(self) -> None:
        """End the thread; what is lent is void when its window ends."""
        self._loop.stop()

    def step(self, now: float) -> float | None:
        """Borrow what is wanted; when to come back, None while nothing is."""
        begins = now >= self._ends
        if self._exhausted and not begins:
            return self._ends
        wanted = self._wanted(begins)
        if wanted == 0:
            return None if begins else now + self._gap
        try:
            self._borrow(wanted, now)
        except StoreUnreachable as error:
            self._outage.met("%s: no calls without their share of the rate: %s", self._job, error)
            return elapsed() + _AFTER_OUTAGE
        return self._ends if self._exhausted else min(self._ends, elapsed() + self._gap)

    @property
    def _gap(self) -> float:
        return self._pace.window / 1000 / _ASKS

    def _wanted(self, begins: bool) -> int:
        """A fair share when a window begins, as far as it was used; later part of it, if there is need."""
        spent, wanting = self._purse.demand()
        share = math.ceil(self._pace.limit / self._fleet)
        if not begins:
            return math.ceil(share / 2) if wanting else 0
        return share if wanting else min(share, math.ceil(spent * _GROWTH))

    def _borrow(self, wanted: int, now: float) -> None:
        self._look_around(now)
        sent = elapsed()
        loan = self._store.lend(self._key, self._pace.window, self._pace.limit, wanted)
        self._purse.put(loan, sent)
        self._ends = elapsed() + (loan.until - loan.now) / 1000
        self._exhausted = self._spent_up(loan)
        self._outage.over()
        self.on_loan()

    def _spent_up(self, loan: Loan) -> bool:
        return loan.first + loan.size >= self._pace.limit or loan.size == 0

    def _look_around(self, now: float) -> None:
        if now >= self._count_at:
            self._fleet = max(1, self._count())
            self._count_at = now + _COUNT_EVERY


def _nobody() -> None:
    """Nobody wants to be told."""
