"""The log of the world outside: what arrived there, in the order it did. No store can colour it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing that was seen outside; `at` is in ms, by the outside's own clock."""

    what: str
    """naive (an email), email, begun (an import), refused (a late write), call (of the paid API)."""
    at: int = 0
    server: int = 0
    job: str = ""
    tick: int = 0
    fence: int = 0
    attempt: int = 0
    high: int = 0
    """The fence the database held against a late write."""
    phone: str = ""
    status: int = 0
    number: str = ""

    @classmethod
    def read(cls, line: str) -> Self:
        """From its line."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """As one line of text."""
        return json.dumps(asdict(self), separators=(",", ":"))


class Journal:
    """The log as it is read: all of it so far, a little more with each look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = ""
        self._seen: list[Seen] = []

    def all(self) -> list[Seen]:
        """Everything that was seen so far."""
        with self.path.open(encoding="utf-8") as log:
            log.seek(self._offset)
            *lines, self._rest = (self._rest + log.read()).split("\n")
            self._offset = log.tell()
        self._seen += map(Seen.read, lines)
        return self._seen

    def of(self, what: str, **like: object) -> Iterator[Seen]:
        """What was seen of one kind, and like this."""
        for seen in self.all():
            if seen.what == what and all(getattr(seen, name) == value for name, value in like.items()):
                yield seen
