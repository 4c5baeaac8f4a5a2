"""Calls lent to this process: each has its instant in the window, and all are void when the window ends.

Whoever borrows the next numbers of a window gets instants spread over all of it, and together the instants
of all numbers are evenly spaced: so the fleet calls at an even pace, however the numbers were shared out. A
call whose instant is long past is void: made up for later, it would be one too many in the second to come.
"""

from __future__ import annotations

import heapq
import math
import threading

from ..lending import LATE, Loan
from .rate import Pace

_SPREAD = 0.97
"""The part of a window that has instants: what is a little late shall not miss the window's end."""

_GOLDEN = (math.sqrt(5) - 1) / 2


class Purse:
    """What may be spent until when; safe to use from all threads."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._stride = _stride(pace.limit)
        self._patience = pace.window / 1000 * max(1 / LATE, 1 / pace.limit)
        self._guard = threading.Lock()
        self._due: list[float] = []
        self._end = -math.inf
        self._spent = 0
        self._wanting = False

    def put(self, loan: Loan, sent: float) -> None:
        """Take in a loan; it counts from before the request was sent, so that it is over here first."""
        end = sent + (loan.until - loan.now) / 1000
        with self._guard:
            if end > self._end + self._pace.window / 2000:
                self._due, self._end = [], end
            for number in range(loan.first, loan.first + loan.size):
                heapq.heappush(self._due, self._instant(number, sent))

    def opens(self, now: float) -> float:
        """When the next call may be made; never, until something is lent."""
        with self._guard:
            self._drop_void(now)
            return self._due[0] if self._due else math.inf

    def spend(self, now: float) -> bool:
        """Make a call, if one is due."""
        with self._guard:
            self._drop_void(now)
            if self._due and self._due[0] <= now:
                heapq.heappop(self._due)
                self._spent += 1
                return True
            self._wanting = True
            return False

    def demand(self) -> tuple[int, bool]:
        """How many were spent since the last question, and whether more were wanted."""
        with self._guard:
            told = self._spent, self._wanting
            self._spent, self._wanting = 0, False
            return told

    def _drop_void(self, now: float) -> None:
        if now >= self._end:
            self._due = []
        while self._due and self._due[0] + self._patience < now:
            heapq.heappop(self._due)

    def _instant(self, number: int, now: float) -> float:
        """When this number's turn is; one whose turn has passed is spread over what is left."""
        place = _SPREAD * (number * self._stride % self._pace.limit) / self._pace.limit
        length = self._pace.window / 1000
        turn = self._end - length + length * place
        return turn if turn >= now else now + (self._end - now) * place


def _stride(limit: int) -> int:
    """A step that visits all places of the window once, and spreads any few that follow each other."""
    near = max(1, round(limit * _GOLDEN))
    return next(step for step in range(near, near + limit + 1) if math.gcd(step, limit) == 1)
