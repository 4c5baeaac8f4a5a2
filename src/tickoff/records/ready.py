"""Records to be called next: claim by claim, and before them the halves of calls that raised."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..tables.base import Key
from .claim import Call, Claim


class Ready:
    """Claimed and not started; the caller sees to it that one thread at a time is here."""

    def __init__(self, per_call: int) -> None:
        self._per_call = per_call
        self._claims: deque[Claim] = deque()
        self._halves: list[Call] = []
        self.unstarted = 0
        """How many records of claims, those of halves excepted."""

    def __bool__(self) -> bool:
        return bool(self._claims or self._halves)

    def add(self, claim: Claim) -> None:
        """All records of a claim."""
        self._claims.append(claim)
        self.unstarted += claim.unstarted

    def split(self, call: Call) -> None:
        """Call its records again, in two halves: one of them may be to blame."""
        half = len(call.records) // 2
        self._halves += [Call(call.claim, part, 0.0) for part in (call.records[:half], call.records[half:])]

    def startable(self, now: float) -> bool:
        """Whether there is a call that may be made while its claim is good."""
        return self._half_is_good(now) or (bool(self._claims) and self._claims[0].deadline > now)

    def take(self, now: float) -> Call:
        """The next call, of which there is one."""
        if self._half_is_good(now):
            call = self._halves.pop()
            call.started = now
            return call
        claim = self._claims[0]
        records = claim.start(self._per_call)
        self.unstarted -= len(records)
        if not claim.unstarted:
            self._claims.popleft()
        return Call(claim, records, now)

    def drop_if(self, wanted: Callable[[Claim], bool]) -> list[tuple[Claim, Sequence[Key]]]:
        """Take out what belongs to such claims."""
        claims = [claim for claim in self._claims if wanted(claim)]
        halves = [half for half in self._halves if wanted(half.claim)]
        for claim in claims:
            self._claims.remove(claim)
            self.unstarted -= claim.unstarted
        self._halves = [half for half in self._halves if half not in halves]
        dropped: list[tuple[Claim, Sequence[Key]]] = [
            (claim, [record.key for record in claim.start(claim.unstarted)]) for claim in claims
        ]
        return dropped + [(half.claim, [record.key for record in half.records]) for half in halves]

    def _half_is_good(self, now: float) -> bool:
        return bool(self._halves) and self._halves[-1].claim.deadline > now
