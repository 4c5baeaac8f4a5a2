"""What this process did with the records of a job, counted; the fleet's counts are the sum of these."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self

from ..tables.base import Charged, Deferred, Done, Failed, Settled, Verdict


@dataclass(frozen=True, slots=True)
class Counts:
    """Records, by what became of them since the process began with the job."""

    done: int = 0
    failed: int = 0
    charged: int = 0
    """Attempts charged, the record is tried again."""
    deferred: int = 0
    refused: int = 0
    """Answers that came too late and were not written."""
    given_back: int = 0

    def plus(self, other: Counts) -> Self:
        """Both together."""
        summed = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return replace(self, **summed)


class Tally:
    """Counts that threads add to."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts = Counts()

    @property
    def counts(self) -> Counts:
        """The counts at this instant."""
        return self._counts

    def settled(self, verdicts: Sequence[Verdict], settled: Settled) -> None:
        """A flush was written, or refused in part."""
        all_of_them = len(settled.written) == len(verdicts)
        written = verdicts if all_of_them else [one for one in verdicts if one.key in settled.written]
        counts = Counter(map(type, written))
        self._add(
            Counts(
                done=counts[Done],
                failed=counts[Failed],
                charged=counts[Charged],
                deferred=counts[Deferred],
                refused=len(settled.refused),
            )
        )

    def given_back(self, records: int) -> None:
        """Records were given back as they were."""
        self._add(Counts(given_back=records))

    def _add(self, counts: Counts) -> None:
        with self._guard:
            self._counts = self._counts.plus(counts)
