"""What this process has in hand: records claimed and not started, running, answered and not yet written.

The bound on repeated calls is kept here: no call starts while a whole flush is unwritten, so a process
that dies leaves at most concurrency x per_call + one flush to be called again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from ..tables.base import Key, Verdict
from .claim import Call, Claim, Flush
from .job import RecordJob
from .unwritten import Unwritten


def _nobody(*_news: object) -> None:
    """Nobody wants to be told."""


class Hand:
    """Records between the database and the calls; safe to use from all threads."""

    def __init__(self, job: RecordJob) -> None:
        self._per_call = job.records_per_call
        self._concurrency = job.concurrency
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._ready: deque[Claim] = deque()
        self._unstarted = 0
        self._halves: list[Call] = []
        self._running: set[Call] = set()
        self._abandoned: set[Call] = set()
        self._claims: set[Claim] = set()
        self._unwritten = Unwritten()
        self._waiting = 0
        self._closed = False
        self.flush = self._per_call
        """So many answers may be unwritten; no call starts while there are more."""
        self.finished = 0
        """Records answered so far."""
        self.on_low: Callable[[], None] = _nobody
        self.on_answers: Callable[[bool], None] = _nobody
        self.on_change: Callable[[], None] = _nobody

    # What the callers need.

    def take(self, now: float) -> Call | None:
        """The next call to make, None when there is none at this instant."""
        with self._guard:
            return self._take(now)

    def wait(self, clock: Callable[[], float]) -> Call | None:
        """The next call to make, waiting for it; None when the hand was closed."""
        with self._guard:
            while not self._closed:
                call = self._take(clock())
                if call is not None:
                    return call
                self._waiting += 1
                self._changed.wait(_LONGEST_WAIT)
                self._waiting -= 1
            return None

    def answer(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        """Take in how a call ended; without verdicts, its records are called again in two halves.

        False when that was decided before, because it took too long.
        """
        with self._guard:
            if call not in self._running:
                self._abandoned.discard(call)
                self._tell()
                return False
            self._running.discard(call)
            self._decide(call, verdicts)
            return True

    def abandon(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        """Decide on a call that goes on running: it keeps its place among those that may run."""
        with self._guard:
            if call not in self._running:
                return False
            self._running.discard(call)
            self._abandoned.add(call)
            self._decide(call, verdicts)
            return True

    def untake(self, call: Call) -> None:
        """Nothing is to be said of this call: its records go back as they were."""
        with self._guard:
            if call in self._running:
                self._running.discard(call)
                self._put_back(call.claim, [record.key for record in call.records])

    def calls(self) -> list[Call]:
        """Those that run now."""
        with self._guard:
            return list(self._running)

    # What the claimer needs.

    def add(self, claim: Claim) -> None:
        """Take a claim in hand."""
        with self._guard:
            self._claims.add(claim)
            self._ready.append(claim)
            self._unstarted += claim.unstarted
            self._tell()

    def drop_ready(self) -> None:
        """Nothing more is to be started: what is ready goes back."""
        with self._guard:
            self._back_if(lambda _claim: True)

    @property
    def ready(self) -> int:
        """How many records are claimed and not started."""
        return self._unstarted

    @property
    def empty(self) -> bool:
        """Whether nothing is ready, running or unwritten."""
        return not self._claims

    @property
    def stuck(self) -> bool:
        """Whether every place is taken by a call that was given up and goes on running."""
        return len(self._abandoned) >= self._concurrency

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
        return len(self._running)

    @property
    def held(self) -> int:
        """How many records are in hand, in whatever way."""
        with self._guard:
            return sum(claim.open for claim in self._claims)

    def close(self) -> None:
        """No call starts any more."""
        with self._guard:
            self._closed = True
            self._back_if(lambda _claim: True)
            self._tell()

    @property
    def closed(self) -> bool:
        """Whether no call starts any more."""
        return self._closed

    def _take(self, now: float) -> Call | None:
        if self._closed or self._unwritten.answers >= self.flush:
            return None
        call = self._half(now) or self._next(now)
        if call is not None:
            call.started = now
            self._running.add(call)
        return call

    def _half(self, now: float) -> Call | None:
        if self._halves and self._halves[-1].claim.deadline > now:
            return self._halves.pop()
        return None

    def _next(self, now: float) -> Call | None:
        if not self._ready or self._ready[0].deadline <= now:
            return None
        before, claim = self._unstarted, self._ready[0]
        records = claim.start(self._per_call)
        self._unstarted -= len(records)
        if not claim.unstarted:
            self._ready.popleft()
        if before >= self.flush > self._unstarted:
            self.on_low()
        return Call(claim, records, now)

    def _decide(self, call: Call, verdicts: Sequence[Verdict]) -> None:
        if not verdicts:
            self._split(call)
            return
        self.finished += len(call.records)
        self._keep(call.claim, verdicts)

    def _split(self, call: Call) -> None:
        half = len(call.records) // 2
        self._halves += [Call(call.claim, part, 0.0) for part in (call.records[:half], call.records[half:])]
        self._tell()

    def _keep(self, claim: Claim, verdicts: Sequence[Verdict]) -> None:
        """They wait for the flusher: told of the first, of half a flush, and when no more will come."""
        before = self._unwritten.waiting
        self._unwritten.add(claim, verdicts)
        waiting, half = self._unwritten.waiting, self.flush // 2
        last = not (self._running or self._ready or self._halves)
        if before == 0 or last or before < half <= waiting:
            self.on_answers(last or waiting >= half)

    def _back_if(self, wanted: Callable[[Claim], bool]) -> None:
        for claim in [claim for claim in self._ready if wanted(claim)]:
            self._ready.remove(claim)
            self._unstarted -= claim.unstarted
            self._put_back(claim, [record.key for record in claim.start(claim.unstarted)])
        for half in [half for half in self._halves if wanted(half.claim)]:
            self._halves.remove(half)
            self._put_back(half.claim, [record.key for record in half.records])

    def _put_back(self, claim: Claim, keys: Sequence[Key]) -> None:
        self._unwritten.put_back(claim, keys)
        self.on_answers(True)

    def _close_if_done(self, claim: Claim) -> None:
        if claim.open == 0:
            self._claims.discard(claim)
            if not self._claims:
                self.on_low()

    def _tell(self) -> None:
        if self._waiting:
            self._changed.notify_all()
        self.on_change()


_LONGEST_WAIT = 1.0
"""Waiting callers look up so often, should the machine have been suspended."""
