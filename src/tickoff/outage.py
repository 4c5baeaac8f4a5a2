"""A loop meets an outage again and again; it is told once, and so is its end."""

from __future__ import annotations

import logging

_log = logging.getLogger("tickoff")


class Outage:
    """Whether one is on, for one loop."""

    def __init__(self) -> None:
        self._on = False

    def met(self, message: str, *about: object) -> None:
        """Log the first of a series."""
        if not self._on:
            _log.warning(message, *about)
        self._on = True

    def over(self, message: str = "", *about: object) -> None:
        """The store answered: log that, if there is something to say, where it had not before."""
        if self._on and message:
            _log.warning(message, *about)
        self._on = False
