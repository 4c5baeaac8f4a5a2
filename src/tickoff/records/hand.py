"""What this process has in hand: records claimed and not started, running, answered and not yet written.

The bound on repeated calls is kept here: no call starts while a whole flush is unwritten, so a process
that dies leaves at most concurrency x per_call + one flush to be called again. Failures that may be the
provider's fault are kept back here as well, until that is clear.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from ..tables.base import Key, Verdict
from .claim import Call, Claim, Flush
from .doubts import Doubts
from .gates import Gate, Open
from .job import RecordJob
from .ready import Ready
from .stake import Stake
from .underway import UnderWay
from .unwritten import Unwritten
from .waiters import Waiters


def _nobody(*_news: object) -> None:
    """Nobody wants to be told."""


class Hand:
    """Records between the database and the calls; safe to use from all threads."""

    def __init__(self, job: RecordJob) -> None:
        self._concurrency = job.concurrency
        self._guard = threading.Lock()
        self._waiters = Waiters(self._guard)
        self._ready = Ready(job.records_per_call)
        self._under_way = UnderWay()
        self.doubts = Doubts()
        self._claims: set[Claim] = set()
        self._unwritten = Unwritten()
        self.closed = False
        """Whether no call starts any more."""
        self.size = job.records_per_call
        self.stake = Stake(job.flush, self.size)
        self.gate: Gate = Open()
        self.finished = 0
        """Records answered so far."""
        self.on_low: Callable[[], None] = _nobody
        self.on_answers: Callable[[bool], None] = _nobody
        self.on_change: Callable[[], None] = _nobody
        self.on_growth: Callable[[], None] = _nobody
        self.is_awaited: Callable[[], bool] = bool  # nobody waits elsewhere

    def expect(self, size: int) -> None:
        """Claims have this size now: so many answers may be unwritten, unless the user wants fewer."""
        self.size = size
        self.stake.expect(size)
        if self.stake.is_growing:
            self.on_growth()

    @property
    def at_stake(self) -> int:
        """How many answers may be lost with this process, once the others are told."""
        return max(self.stake.wanted, self._unwritten.answers)

    def told(self, at_stake: int) -> None:
        """The others know that so many may be lost."""
        with self._guard:
            self.stake.told(at_stake)
            self._tell()

    # What the callers need.

    def take(self, now: float) -> Call | None:
        """The next call to make, None when there is none at this instant."""
        with self._guard:
            return self._take(now)

    def wait(self, clock: Callable[[], float]) -> Call | None:
        """The next call to make, waiting for it; None when the hand was closed."""
        with self._guard:
            while not self.closed:
                call = self._take(clock())
                if call is not None:
                    return call
                self._waiters.wait()
            return None

    def answer(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        """Take in how a call ended; without verdicts, its records are called again in two halves.

        False when that was decided before, because it took too long.
        """
        with self._guard:
            return self._ends(call) and self._decide(call, verdicts)

    def abandon(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        """Decide on a call that goes on running: it keeps its place among those that may run."""
        with self._guard:
            return self._under_way.is_given_up(call) and self._decide(call, verdicts)

    def doubt(self, call: Call, verdicts: Sequence[Verdict], *, goes_on: bool = False) -> bool:
        """Take in a failure that may be the provider's: it waits to be blamed, and stays in flight."""
        with self._guard:
            news = self._under_way.is_given_up(call) if goes_on else self._ends(call)
            if news:
                self.doubts.add(call, verdicts)
            return news

    def blame_records(self) -> None:
        """The failures in doubt were the records' own."""
        with self._guard:
            for call, verdicts in self.doubts.records_to_blame():
                self._decide(call, verdicts)

    def blame_provider(self, why: str, wait: float) -> None:
        """The failures in doubt were the provider's: their records wait and are tried again, uncharged."""
        with self._guard:
            for call, verdicts in self.doubts.provider_to_blame(why, wait):
                self._decide(call, verdicts)

    @property
    def pending(self) -> bool:
        """Whether calls run or may still be made of what is in hand."""
        return bool(self._under_way.running or self._ready)

    def nudge(self, callers: int) -> bool:
        """So many calls may start: wake as many who wait for that; whether somebody was waiting."""
        with self._guard:
            if not self._ready or self._unwritten.answers >= self.stake.limit:
                return False
            waiting = bool(self._waiters) or self.is_awaited()
            self._waiters.wake(callers)
        self.on_change()
        return waiting

    def untake(self, call: Call) -> None:
        """Nothing is to be said of this call: its records go back as they were."""
        with self._guard:
            if self._under_way.ends(call):
                self._put_back_all(call)

    def calls(self) -> list[Call]:
        """Those that run now."""
        with self._guard:
            return list(self._under_way.running)

    # What the claimer needs.

    def add(self, claim: Claim) -> None:
        """Take a claim in hand."""
        with self._guard:
            self._claims.add(claim)
            self._ready.add(claim)
            self._tell()

    def drop_ready(self) -> None:
        """Nothing more is to be started: what is ready goes back."""
        with self._guard:
            self._back_if(lambda _claim: True)

    @property
    def ready(self) -> int:
        """How many records are claimed and not started."""
        return self._ready.unstarted

    @property
    def empty(self) -> bool:
        """Whether nothing is ready, running or unwritten."""
        return not self._claims

    @property
    def stuck(self) -> bool:
        """Whether every place is taken by a call that was given up and goes on running."""
        return self._under_way.abandoned >= self._concurrency

    # What the keeper of claims needs.

    def claims(self) -> list[Claim]:
        """Those of which anything is left."""
        with self._guard:
            return list(self._claims)

    def renewed(self, claims: Iterable[Claim], sent: float) -> None:
        """These are good for another TTL."""
        with self._guard:
            for claim in claims:
                claim.good_from(sent)
            self._tell()

    def lose(self, claim: Claim) -> None:
        """It is no longer wholly ours: nothing of it is started any more."""
        with self._guard:
            claim.lost = True
            claim.deadline = float("-inf")
            self._back_if(lambda held: held is claim)

    # What the flusher needs.

    def collect(self) -> list[Flush]:
        """Take what is to be written; it counts as unwritten until `written` or `not_written`."""
        with self._guard:
            return self._unwritten.collect()

    def written(self, flush: Flush, again: Sequence[Verdict]) -> None:
        """It is written or refused, except `again`, which has to be tried once more."""
        with self._guard:
            self._unwritten.written(flush, again)
            self._close_if_done(flush.claim)
            self._tell()

    def not_written(self, flush: Flush) -> None:
        """The database did not answer: all of it has to be tried once more, as the flusher knows."""
        with self._guard:
            self._unwritten.not_written(flush)

    @property
    def unwritten(self) -> int:
        """How many answers are not written yet."""
        return self._unwritten.answers

    @property
    def returning(self) -> bool:
        """Whether records wait to be given back."""
        return bool(self._unwritten)

    @property
    def running(self) -> int:
        """How many calls are under way."""
        return len(self._under_way.running)

    @property
    def held(self) -> int:
        """How many records are in hand, in whatever way."""
        with self._guard:
            return sum(claim.open for claim in self._claims)

    def close(self) -> None:
        """No call starts any more."""
        with self._guard:
            self.closed = True
            self._back_if(lambda _claim: True)
            for call, _ in self.doubts.records_to_blame():
                self._put_back_all(call)
            self._tell()

    def _take(self, now: float) -> Call | None:
        if self.closed or self._unwritten.answers >= self.stake.limit or not self._ready.startable(now):
            return None
        if not self.gate.admit(now, self._under_way.places):
            return None
        before = self._ready.unstarted
        call = self._ready.take(now)
        self._under_way.running.add(call)
        if before >= self.size > self._ready.unstarted:
            self.on_low()
        return call

    def _ends(self, call: Call) -> bool:
        """It runs no longer; False when that was decided before, and only its place is free now."""
        news = self._under_way.ends(call)
        if not news:
            self._tell()
        return news

    def _decide(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        if verdicts:
            self.finished += len(call.records)
            self._keep(call.claim, verdicts)
        else:
            self._ready.split(call)
            self._tell()
        return True

    def _keep(self, claim: Claim, verdicts: Sequence[Verdict]) -> None:
        """They wait for the flusher: told of the first, of half a flush, and when no more will come."""
        before = self._unwritten.waiting
        self._unwritten.add(claim, verdicts)
        waiting, half = self._unwritten.waiting, self.stake.limit // 2
        last = not (self._under_way.running or self._ready)
        if before == 0 or last or before < half <= waiting:
            self.on_answers(last or waiting >= half)

    def _back_if(self, wanted: Callable[[Claim], bool]) -> None:
        for claim, keys in self._ready.drop_if(wanted):
            self._put_back(claim, keys)

    def _put_back(self, claim: Claim, keys: Sequence[Key]) -> None:
        self._unwritten.put_back(claim, keys)
        self.on_answers(True)

    def _put_back_all(self, call: Call) -> None:
        self._put_back(call.claim, [record.key for record in call.records])

    def _close_if_done(self, claim: Claim) -> None:
        if claim.open == 0:
            self._claims.discard(claim)
            if not self._claims:
                self.on_low()

    def _tell(self) -> None:
        self._waiters.wake_all()
        self.on_change()
