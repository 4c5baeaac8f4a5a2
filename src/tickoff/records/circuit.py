"""The circuit: when call after call fails alike, the provider is down, and no record is to blame.

Failures are held back until it is clear whose fault they were. An answer shows that the provider works, so
they are charged to their records; so many failures in a row show that it does not, so they are charged to
nobody, calls stop, and one record after another is tried until one of them is answered.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections import Counter, deque

from ..tables.base import Key

_log = logging.getLogger("tickoff")

IN_A_ROW = 6
"""So many failures without an answer in between…"""

_RECORDS = 4
"""…of at least so many records…"""

_CAREFUL = 3
"""After so many, one call at a time is made."""

_ALIKE = 0.75
"""…of which this part is of one kind."""

_FALSE_ALARM = 5.0
"""When the provider answers within so many seconds, the failures were perhaps the records' own fault…"""

_EXCUSED = 60.0
"""…so failures of that kind are charged for so long, without another alarm."""


class Circuit:
    """Whether the provider seems to work; safe to use from all threads."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._guard = threading.Lock()
        self._row: deque[tuple[str, Key]] = deque(maxlen=IN_A_ROW)
        self._kind = ""
        self._excused: dict[str, float] = {}
        self.since = -math.inf
        self._probes = 0
        self.why = ""
        """Why it is open, empty while it is not."""

    @property
    def calm(self) -> bool:
        """Whether the last call was answered."""
        return not self._row and not self.why

    @property
    def open(self) -> bool:
        """Whether calls have stopped."""
        return bool(self.why)

    def opens(self, now: float, running: int) -> float:
        """Calls may be made now, or not before the provider has answered; a probe may."""
        if self.why:
            return now if self._probes else math.inf
        return math.inf if running and self._is_careful(now) else now

    def spend(self) -> None:
        """A call is made; while the circuit is open it is the probe."""
        if self._probes:
            with self._guard:
                self._probes = 0

    def failed(self, kind: str, key: Key, words: str, now: float) -> None:
        """A call failed."""
        with self._guard:
            self._row.append((kind, key))
            if not self.why and self._excused.get(kind, 0.0) <= now and self._alarming:
                self._trip(words, now)

    def answered(self, now: float) -> bool:
        """The provider answered; whether calls had stopped."""
        if self.calm:
            return False
        with self._guard:
            self._row.clear()
            was_open = self.open
            if was_open:
                self._close(now)
            return was_open

    def probe(self) -> None:
        """One call may be made."""
        with self._guard:
            self._probes = 1

    def _is_careful(self, now: float) -> bool:
        return len(self._row) >= _CAREFUL and self._excused.get(self._row[-1][0], 0.0) <= now

    @property
    def _alarming(self) -> bool:
        if len(self._row) < IN_A_ROW or len({key for _, key in self._row}) < _RECORDS:
            return False
        (self._kind, times), *_ = Counter(kind for kind, _ in self._row).most_common(1)
        return times >= IN_A_ROW * _ALIKE

    def _trip(self, words: str, now: float) -> None:
        self.why = f"call after call fails alike, nothing is charged: {words}"
        self.since, self._probes = now, 0
        _log.error("%s: %s; trying one record now and then", self._job, self.why)

    def _close(self, now: float) -> None:
        if now - self.since < _FALSE_ALARM:
            self._excused[self._kind] = now + _EXCUSED
        self.why = ""
        _log.warning("%s: the provider answers again, after %.0f s", self._job, now - self.since)


def kind_of(error: BaseException) -> str:
    """What failures have in common that are alike; all trouble with a connection is."""
    if isinstance(error, OSError) and not getattr(error, "response", None):
        return "OSError"
    said = re.sub(r"\d+", "#", str(error))[:80]
    return f"{type(error).__qualname__}: {said}"
