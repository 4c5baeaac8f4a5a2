"""How many records to claim at once: about half a second's work, so that a crash or a pause holds up few."""

from __future__ import annotations

_SHARE = 0.5
"""Seconds of work that one claim should hold."""

_GROWTH = 4
_MOST = 1000
"""More in one claim measured no faster."""


class Appetite:
    """The size of the next claim, from how fast the work went."""

    def __init__(self, at_once: int) -> None:
        self._least = at_once
        self.size = at_once
        self._finished = 0
        self._since = 0.0

    def measure(self, finished: int, now: float) -> int:
        """Take in how many records were finished so far; the size that follows.

        Two claims may come close together, while all calls wait for a flush: that tells nothing of the rate.
        """
        did, spent = finished - self._finished, now - self._since
        if self._since and did < self.size and spent < _SHARE:
            return self.size
        if self._since and spent > 0 and did > 0:
            self._adapt(did / spent)
        self._finished, self._since = finished, now
        return self.size

    def _adapt(self, rate: float) -> None:
        wanted = min(rate * _SHARE, self.size * _GROWTH)
        self.size = int(max(self._least, min(wanted, max(_MOST, self._least))))
