"""Failures that may be the provider's fault, kept back until that is clear."""

from __future__ import annotations

from collections.abc import Sequence

from ..tables.base import Deferred, Verdict
from .claim import Call

Decided = list[tuple[Call, Sequence[Verdict]]]


class Doubts:
    """The caller sees to it that one thread at a time is here."""

    def __init__(self) -> None:
        self._failed: Decided = []

    def __bool__(self) -> bool:
        return bool(self._failed)

    def add(self, call: Call, verdicts: Sequence[Verdict]) -> None:
        """A call that failed, and what becomes of its records if they are to blame."""
        self._failed.append((call, verdicts))

    def records_to_blame(self) -> Decided:
        """All of them, which are in doubt no longer."""
        failed, self._failed = self._failed, []
        return failed

    def provider_to_blame(self, why: str, wait: float) -> Decided:
        """The same, but their records wait and are tried again, uncharged."""
        return [
            (call, [Deferred(record.key, why, wait) for record in call.records])
            for call, _ in self.records_to_blame()
        ]
