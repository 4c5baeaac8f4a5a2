"""A claim of ours, the calls made of its records, and what goes back into the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from ..tables.base import Batch, Key, Record, Verdict

RENEW_AFTER = 1 / 3
"""Fraction of its TTL after which a claim is renewed."""


class Claim:
    """A batch of ours: how long it is good, and how many of its records are not written yet."""

    __slots__ = (
        "_unstarted",
        "alone",
        "deadline",
        "lost",
        "open",
        "records",
        "renew_at",
        "token",
        "ttl",
        "unstarted",
    )

    def __init__(self, batch: Batch, sent: float, ttl: float) -> None:
        self.token = batch.token
        self.alone = batch.alone
        self.records = batch.records
        self.open = self.unstarted = len(batch.records)
        self._unstarted = iter(batch.records)
        self.ttl = ttl
        self.lost = False
        self.good_from(sent)

    def good_from(self, sent: float) -> None:
        """Count from before the request was sent: the database counts from later on."""
        self.renew_at = sent + self.ttl * RENEW_AFTER
        self.deadline = sent + self.ttl

    def start(self, most: int) -> Sequence[Record]:
        """The next records, in their order; each is had once."""
        records = [*islice(self._unstarted, most)]
        self.unstarted -= len(records)
        return records

    def record(self, key: Key) -> Record:
        """The record of this key."""
        return next(record for record in self.records if record.key == key)


class Call:
    """Records handed to the function together."""

    __slots__ = ("claim", "overdue", "records", "started")

    def __init__(self, claim: Claim, records: Sequence[Record], started: float) -> None:
        self.claim = claim
        self.records = records
        self.started = started
        self.overdue = False


@dataclass(frozen=True, slots=True)
class Flush:
    """What is to be written for one claim: verdicts, and records that were not started."""

    claim: Claim
    verdicts: Sequence[Verdict]
    back: Sequence[Key]
    last: bool
    """Whether nothing of the claim is left after it."""

    @classmethod
    def of(cls, claim: Claim, verdicts: Sequence[Verdict], back: Sequence[Key]) -> Flush:
        """What is to be written now."""
        return cls(claim, verdicts, back, last=claim.open == len(verdicts) + len(back))
