"""A canary: some random records are called, and nothing is written until somebody has seen the answers."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..names import new_token, owner
from ..tables.base import Batch, Deferred, Done, Key, RecordTable, Settled, State, Verdict
from .job import RecordJob
from .worker import Worker

_LOOK = 0.02
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the canary showed."""

    records: int
    answers: dict[str, Any]
    """Some answers, by key."""
    done: int
    errors: dict[str, int]
    """Kinds of errors, and how often each came."""
    seconds: float
    left: int
    """Records that are still to be worked."""
    calls: int
    """Calls that they need, if each is made once."""

    @property
    def projected(self) -> float:
        """Seconds that a process as fast as this one needs for them."""
        return self.seconds * self.left / self.records if self.records else 0.0


class Canary:
    """Works a sample, and keeps it claimed until it is told what to do with the answers."""

    def __init__(
        self, job: RecordJob, table: RecordTable, worker_on: Callable[[RecordTable], Worker]
    ) -> None:
        self._job = job
        self._table = table
        self._worker_on = worker_on
        self._batch = Batch("", (), exhausted=True)
        self._verdicts: dict[Key, Verdict] = {}
        self._loop = Loop(f"tickoff-canary-{job.name}", self._renew)

    def run(self, size: int, stop: threading.Event) -> Sampled:
        """Call the function for so many random records."""
        keys = [record.key for record in self._table.sample(size)]
        self._batch = self._table.claim_these(new_token(), owner(), keys, self._job.ttl)
        began = elapsed()
        if self._batch.records:
            shown = cast("RecordTable", _Shown(self._table, self._batch, self._verdicts))
            self._work(self._worker_on(shown), stop)
            self._loop.wake_by(elapsed())
        return self._sampled(elapsed() - began)

    def keep(self) -> int:
        """Write the answers that the function gave; the other records go back as they were. How many."""
        self._loop.stop()
        answers = [verdict for verdict in self._verdicts.values() if isinstance(verdict, Done)]
        written = self._table.settle(self._batch.token, answers).written if answers else frozenset()
        rest = [record.key for record in self._batch.records if record.key not in written]
        if rest:
            self._table.give_back(self._batch.token, rest, last=True)
        return len(written)

    def give_back(self) -> None:
        """Write nothing: all records are as they were."""
        self._loop.stop()
        if self._batch.records:
            self._table.give_back(
                self._batch.token, [record.key for record in self._batch.records], last=True
            )

    def _work(self, worker: Worker, stop: threading.Event) -> None:
        worker.start()
        try:
            while len(self._verdicts) < len(self._batch.records) and not worker.paused:
                if stop.wait(_LOOK):
                    break
        finally:
            worker.stop()

    def _renew(self, now: float) -> float | None:
        self._table.renew([self._batch.token], self._job.ttl)
        return now + self._job.ttl / 3

    def _sampled(self, seconds: float) -> Sampled:
        done = [one for one in self._verdicts.values() if isinstance(one, Done)]
        others = [one for one in self._verdicts.values() if not isinstance(one, Done)]
        counts = self._table.counts()
        left = counts[State.PENDING] + counts[State.IN_FLIGHT] - len(done)
        return Sampled(
            records=len(self._verdicts),
            answers={_text(one.key): dict(one.values) for one in done[:_SHOWN]},
            done=len(done),
            errors=dict(Counter(_kind(one) for one in others).most_common()),
            seconds=seconds,
            left=left,
            calls=ceil(left / self._job.records_per_call),
        )


class _Shown:
    """The table as the canary's worker sees it: the sample is all there is, and answers stay here."""

    def __init__(self, table: RecordTable, batch: Batch, verdicts: dict[Key, Verdict]) -> None:
        self._table = table
        self._batch = batch
        self._given = False
        self._verdicts = verdicts

    def claim(self, token: str, *_arguments: Any) -> Batch:
        """The sample, once."""
        if self._given:
            return Batch(token, (), exhausted=True)
        self._given = True
        return self._batch

    def claim_suspect(self, token: str, *_arguments: Any) -> Batch:
        """None: what may kill its process is no canary."""
        return Batch(token, (), exhausted=True, alone=True)

    def settle(self, _token: str, verdicts: Sequence[Verdict], **_options: Any) -> Settled:
        """Keep the answers in mind."""
        self._verdicts.update((verdict.key, verdict) for verdict in verdicts)
        return Settled(written=frozenset(verdict.key for verdict in verdicts))

    def give_back(self, _token: str, keys: Sequence[Key] | None = None, **_options: Any) -> int:
        """Nothing is said of these; the canary gives them back itself."""
        return len(keys or ())

    def close(self) -> None:
        """The canary goes on with the connections."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def _text(key: Key) -> str:
    return ",".join(map(str, key))


def _kind(verdict: Verdict) -> str:
    said = verdict.why if isinstance(verdict, Deferred) else getattr(verdict, "error", "")
    return re.sub(r"\d+", "#", str(said))[:80]
