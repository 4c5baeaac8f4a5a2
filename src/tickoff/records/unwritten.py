"""What waits to be written, claim by claim: answers, and records that go back as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..tables.base import Key, Verdict
from .claim import Claim, Flush


@dataclass(slots=True)
class _Share:
    """One claim's part."""

    verdicts: list[Verdict] = field(default_factory=list)
    back: list[Key] = field(default_factory=list)


class Unwritten:
    """Until the flusher takes it, and until it says that it is written."""

    def __init__(self) -> None:
        self._shares: dict[Claim, _Share] = {}
        self.answers = 0
        """All that are not written, those included that are being written."""
        self.waiting = 0
        """Those that nobody has taken to be written."""

    def __bool__(self) -> bool:
        return bool(self._shares)

    def add(self, claim: Claim, verdicts: Sequence[Verdict]) -> None:
        """Answers."""
        self.answers += len(verdicts)
        self.waiting += len(verdicts)
        self._share(claim).verdicts.extend(verdicts)

    def put_back(self, claim: Claim, keys: Sequence[Key]) -> None:
        """Records that nothing is said of."""
        self._share(claim).back.extend(keys)

    def collect(self) -> list[Flush]:
        """All that waits, to be written."""
        taken, self._shares, self.waiting = self._shares, {}, 0
        return [Flush.of(claim, share.verdicts, share.back) for claim, share in taken.items()]

    def written(self, flush: Flush, again: Sequence[Verdict]) -> None:
        """It is written, except what has to be tried again."""
        self.answers -= len(flush.verdicts)
        flush.claim.open -= len(flush.verdicts) + len(flush.back) - len(again)
        if again:
            self.add(flush.claim, again)

    def not_written(self, flush: Flush) -> None:
        """All of it has to be tried again."""
        self.answers -= len(flush.verdicts)
        self.add(flush.claim, flush.verdicts)
        self.put_back(flush.claim, flush.back)

    def _share(self, claim: Claim) -> _Share:
        share = self._shares.get(claim)
        if share is None:
            share = self._shares[claim] = _Share()
        return share
