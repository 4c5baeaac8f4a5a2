"""Claims are renewed at a third of their TTL, in one batch, by a thread that no call can hold up."""

from __future__ import annotations

import logging

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..tables.base import RecordTable
from .claim import Claim
from .hand import Hand
from .job import RecordJob

_log = logging.getLogger("tickoff")

_TOGETHER = 1 / 12
"""Claims due within this fraction of the TTL are renewed along with those due now."""

_RETRY = 1 / 24
"""Fraction of the TTL between two tries while the database does not answer."""


class Renewal:
    """Keeps what is in hand ours."""

    def __init__(self, job: RecordJob, table: RecordTable, hand: Hand) -> None:
        self._job = job
        self._table = table
        self._hand = hand
        self._loop = Loop(f"tickoff-renew-{job.name}", self.step)

    def keep(self, claim: Claim) -> None:
        """Renew this claim until nothing of it is left."""
        self._loop.wake_by(claim.renew_at)

    def step(self, now: float) -> float | None:
        """Renew what is due; when to come back."""
        claims = [claim for claim in self._hand.claims() if not claim.lost]
        if any(claim.renew_at <= now for claim in claims):
            self._renew([one for one in claims if one.renew_at <= now + one.ttl * _TOGETHER], now)
        return min((claim.renew_at for claim in claims if not claim.lost), default=None)

    def stop(self) -> None:
        """Renew nothing any more."""
        self._loop.stop()

    def _renew(self, claims: list[Claim], now: float) -> None:
        try:
            ours = self._table.renew([claim.token for claim in claims], self._job.ttl)
        except StoreUnreachable as error:
            _log.warning("%s: claims could not be renewed, trying again: %s", self._job.name, error)
            for claim in claims:
                claim.renew_at = elapsed() + claim.ttl * _RETRY
            return
        self._hand.renewed([claim for claim in claims if claim.token in ours], now)
        for claim in claims:
            if claim.token not in ours:
                self._lose(claim)

    def _lose(self, claim: Claim) -> None:
        self._hand.lose(claim)
        if claim.open:  # else its last answer was written meanwhile
            _log.warning(
                "%s: a claim of %d records ran out; answers that are still to come may be refused",
                self._job.name,
                claim.open,
                extra={"job": self._job.name},
            )
