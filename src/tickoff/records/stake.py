"""How many answers may be unwritten: what a process that dies takes with it, beside the calls that run.

The others are told of it before it is risked, so that what is published as possibly repeated is the bound.
"""

from __future__ import annotations

import math


class Stake:
    """As many as a claim has, unless the user wants fewer; and no more than was told."""

    def __init__(self, most: int | None, size: int) -> None:
        self._most = math.inf if most is None else most
        self._told = math.inf
        self.expect(size)

    @property
    def is_growing(self) -> bool:
        """Whether the others have to be told before it is what it should be."""
        return self.limit < self.wanted

    def expect(self, size: int) -> None:
        """Claims have this size from now on."""
        self.wanted = int(min(size, self._most))
        self.limit = int(min(self.wanted, self._told))

    def told(self, answers: int) -> None:
        """The others know that so many may be lost."""
        self._told = answers
        self.limit = min(self.wanted, answers)
