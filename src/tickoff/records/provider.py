"""What this process knows of the provider that the user's function calls.

When a call may be made, and whose fault a failure was: learnt from how calls end, and from other servers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..leases.storetime import StoreTime
from ..model import Note
from ..stores.base import LeaseStore
from ..tables.base import Verdict
from .circuit import Circuit
from .claim import Call
from .gates import Gates
from .hand import Hand
from .hold import Hold
from .job import RecordJob
from .lender import Lender
from .limit import Limit
from .progress import read_report
from .purse import Purse

_ANSWERS = "the provider answers"
_NEWS = 3.0
"""Seconds for which the others are told that the provider answers again."""

_PROBE_EVERY = 2000
"""Milliseconds between two probes by the whole fleet while the circuit is open."""

_TRIED_AGAIN = 1.0
"""Seconds until a record is tried again that the provider did not answer."""

_QUIET = 0.2
"""Failures in doubt are the records' own when nothing else was there to be called for so many seconds."""


class Provider:
    """Gates before the calls, and what is learnt after them; safe to use from all threads."""

    def __init__(self, job: RecordJob, board: str, store: LeaseStore, hand: Hand, fleet: str) -> None:
        self._job = job
        self._board = board
        self._store = store
        self._hand = hand
        self.time = StoreTime()
        self._circuit = Circuit(job.name)
        self._hold = Hold(board, store, self.time)
        self._limit = None if job.bounds is None else Limit(job.bounds)
        purse = None if job.pace is None else Purse(job.pace)
        self._gates = hand.gate = Gates(job.name, self._circuit, self._hold, self._limit, purse)
        self._gates.on_open = hand.nudge
        if job.pace is not None and purse is not None:
            key = job.pace.key(board)
            lender = Lender(job.name, job.pace, key, store, lambda: _alive(store.notes(fleet)), purse)
            lender.on_loan = self._gates.look
            self._gates.lender = lender
        self._doubts = Loop(f"tickoff-doubt-{job.name}", self.step)
        self._recovered = False

    def answered(self, call: Call, verdicts: Sequence[Verdict], now: float) -> None:
        """A call was answered, whatever the answer."""
        self._ended(call, now)
        self._hand.answer(call, verdicts)
        if not self._circuit.calm:
            self._calm_down(now)
        if self._hand.doubts:
            self._hand.blame_records()

    def failed(self, call: Call, verdicts: Sequence[Verdict], kind: str, words: str, now: float) -> None:
        """A call failed: it stays in doubt whose fault that was, until another one is answered."""
        self._ended(call, now)
        if not self._job.circuit:
            self._hand.answer(call, verdicts)
            return
        self._hand.doubt(call, verdicts)
        self._consider(call, kind, words, now)

    def overdue(self, call: Call, verdicts: Sequence[Verdict], now: float, *, goes_on: bool) -> bool:
        """A call took too long; whether that is news. One that cannot be ended goes on."""
        if self._limit is not None:
            self._limit.overloaded(now)
        if not self._job.circuit:
            return self._hand.abandon(call, verdicts) if goes_on else self._hand.answer(call, verdicts)
        told = self._hand.doubt(call, verdicts, goes_on=goes_on)
        self._consider(call, "time-out", f"timed out after {self._job.timeout:g}s", now)
        return told

    def deferred(self, wait: float, why: str, now: float) -> bool:
        """The provider wants to be left alone; whether the others have to be told at once."""
        if self._limit is not None:
            self._limit.overloaded(now)
        return self._hold.defer(wait, why, now)

    def exchange(self, now: float) -> None:
        """Tell the others what is new, hear what they tell, and ask whether we may probe."""
        self._hold.tell(now)
        if self._recovered:
            self._store.post(self._board, _ANSWERS, "", round(_NEWS * 1000))
            self._recovered = False
        for note in self._store.notes(self._board):
            self._hear(note, now)
        if self._circuit.open and self._store.lend(f"{self._board}@probe", _PROBE_EVERY, 1, 1).size:
            self._circuit.probe()
            self._gates.look()

    def why(self, now: float) -> str:
        """Why calls wait, empty when they do not."""
        return self._circuit.why or self._hold.why(now)

    def step(self, now: float) -> float | None:
        """Failures in doubt, and nothing else to call: they are the records' own."""
        if not self._hand.doubts:
            return None
        if self._hand.pending:
            return now + _QUIET
        self._hand.blame_records()
        return None

    def stop(self) -> None:
        """End the threads."""
        for loop in (self._doubts, self._gates, self._gates.lender):
            if loop is not None:
                loop.stop()

    def _calm_down(self, now: float) -> None:
        held_up = self._circuit.opens(now, 1) > now
        if self._circuit.answered(now):
            self._recovered = True
        if held_up:
            self._gates.look()

    def _consider(self, call: Call, kind: str, words: str, now: float) -> None:
        """Whether the provider is down, now that one more call failed."""
        self._circuit.failed(kind, call.records[0].key, words, now)
        if self._circuit.open:
            self._hand.blame_provider(words, _TRIED_AGAIN)
        else:
            self._doubts.wake_by(elapsed() + _QUIET)

    def _ended(self, call: Call, now: float) -> None:
        if self._limit is not None:
            before = self._limit.size
            self._limit.ended(now - call.started, now)
            if self._limit.size > before:
                self._gates.look()

    def _hear(self, note: Note, now: float) -> None:
        if note.key != _ANSWERS:
            self._hold.hear(note)
        elif self._circuit.open and self.time.local(note.until) - _NEWS > self._circuit.since:
            self._circuit.answered(now)
            self._gates.look()


def _alive(notes: Sequence[Note]) -> int:
    """How many servers work."""
    return sum(read_report(note).alive for note in notes)
