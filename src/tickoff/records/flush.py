"""Answers on their way into the table: in batches, by size or within 100 ms, again and again if need be."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..outage import Outage
from ..tables.base import Failed, RecordTable, Settled, Verdict
from .blame import charged
from .claim import Flush
from .hand import Hand
from .job import RecordJob
from .tally import Tally

_log = logging.getLogger("tickoff")

WINDOW = 0.1
"""Seconds after which an answer is on its way, however few there are."""

_RETRY = 0.25
"""Seconds between two tries while the database does not answer, or a row is locked by somebody."""

_TOLD = 3
"""Of one flush, so many failures are told one by one: a million rows may fail alike."""


class Flusher:
    """Writes what the calls answered, and gives back what was not started."""

    def __init__(self, job: RecordJob, table: RecordTable, hand: Hand, tally: Tally) -> None:
        self._job = job
        self._table = table
        self._hand = hand
        self._tally = tally
        self._outage = Outage()
        self._loop = Loop(f"tickoff-flush-{job.name}", self.step)
        hand.on_answers = self._wake

    def step(self, _now: float) -> float | None:
        """Write all there is; when to come back."""
        written = [self._write(flush) for flush in self._hand.collect()]
        return None if all(written) else elapsed() + _RETRY

    def stop(self) -> None:
        """End the thread; what is still unwritten stays so until the claim is swept."""
        self._loop.stop()

    def _wake(self, urgent: bool) -> None:
        self._loop.wake_by(elapsed() + (0.0 if urgent else WINDOW))

    def _write(self, flush: Flush) -> bool:
        """Write one claim's share; whether nothing of it has to be tried again."""
        try:
            settled = self._settle(flush)
        except StoreUnreachable as error:
            self._hand.not_written(flush)
            self._outage.met("%s: answers wait to be written: %s", self._job.name, error)
            return False
        except BaseException:
            self._hand.not_written(flush)  # a bug of somebody's loses no answer
            raise
        self._outage.over("%s: %s answers again", self._job.name, self._table.address)
        again = self._again(flush, settled)
        self._tally.settled(flush.verdicts, settled)
        self._report(flush, settled)
        self._hand.written(flush, again)
        return not again

    def _settle(self, flush: Flush) -> Settled:
        token, settled = flush.claim.token, Settled()
        if flush.verdicts:
            settled = self._table.settle(token, flush.verdicts, last=flush.last and not flush.back)
        if flush.back:
            self._tally.given_back(self._table.give_back(token, flush.back, last=flush.last))
        return settled

    def _again(self, flush: Flush, settled: Settled) -> list[Verdict]:
        """Rows somebody held locked, and answers the database refused: those are charged instead."""
        if not settled.busy and not settled.culprits:
            return []
        busy = [verdict for verdict in flush.verdicts if verdict.key in settled.busy]
        return busy + [
            charged(self._job, flush.claim.record(key), f"the database refused the answer: {words}")
            for key, words in settled.culprits.items()
        ]

    def _report(self, flush: Flush, settled: Settled) -> None:
        if settled.refused:
            _log.warning(
                "%s: %d answers came after their claim was lost and were refused",
                self._job.name,
                len(settled.refused),
                extra={"job": self._job.name},
            )
        failed = _failed(flush.verdicts, settled)
        for verdict in failed[:_TOLD]:
            _log.error("%s: %s is FAILED: %s", self._job.name, verdict.key, verdict.error)
        if len(failed) > _TOLD:
            _log.error("%s: and %d more are FAILED", self._job.name, len(failed) - _TOLD)


def _failed(verdicts: Sequence[Verdict], settled: Settled) -> list[Failed]:
    return [one for one in verdicts if isinstance(one, Failed) and one.key in settled.written]
