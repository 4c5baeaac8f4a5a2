"""Records to be called next: as they were claimed, and before them the halves of calls that raised."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..tables.base import Key, Record
from .claim import Call, Claim


class Ready:
    """Claimed and not started; the caller sees to it that one thread at a time is here."""

    def __init__(self, per_call: int) -> None:
        self._per_call = per_call
        self._records: deque[tuple[Claim, Record]] = deque()
        self._halves: list[Call] = []

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        return bool(self._records or self._halves)

    def add(self, claim: Claim) -> None:
        """All records of a claim."""
        self._records.extend((claim, record) for record in claim.records)

    def split(self, call: Call) -> None:
        """Call its records again, in two halves: one of them may be to blame."""
        half = len(call.records) // 2
        self._halves += [Call(call.claim, part, 0.0) for part in (call.records[:half], call.records[half:])]

    def startable(self, now: float) -> bool:
        """Whether there is a call that may be made while its claim is good."""
        return self._half_is_good(now) or (bool(self._records) and self._records[0][0].deadline > now)

    def take(self, now: float) -> Call:
        """The next call, of which there is one."""
        if self._half_is_good(now):
            call = self._halves.pop()
            call.started = now
            return call
        claim, record = self._records.popleft()
        return Call(claim, (record,) if self._per_call == 1 else self._with_neighbours(claim, record), now)

    def drop_if(self, wanted: Callable[[Claim], bool]) -> list[tuple[Claim, Sequence[Key]]]:
        """Take out what belongs to such claims."""
        records = [one for one in self._records if wanted(one[0])]
        halves = [half for half in self._halves if wanted(half.claim)]
        if records:
            self._records = deque(one for one in self._records if not wanted(one[0]))
        self._halves = [half for half in self._halves if half not in halves]
        dropped: list[tuple[Claim, Sequence[Key]]] = [(claim, [record.key]) for claim, record in records]
        return dropped + [(half.claim, [record.key for record in half.records]) for half in halves]

    def _half_is_good(self, now: float) -> bool:
        return bool(self._halves) and self._halves[-1].claim.deadline > now

    def _with_neighbours(self, claim: Claim, record: Record) -> Sequence[Record]:
        records = [record]
        while len(records) < self._per_call and self._records and self._records[0][0] is claim:
            records.append(self._records.popleft()[1])
        return records
