"""What a server did in a round, what a round came to, and the count over all logs at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One server in one round; `asked` is when it sent its race, by the machine's monotonic clock."""

    round: int
    server: int
    pid: int
    won: bool = False
    fence: int = 0
    asked: float = 0.0

    @classmethod
    def read(cls, line: str) -> Self:
        """A turn from its line."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """The turn as one line of text."""
        return json.dumps(asdict(self))

    def ended(self, *, won: bool, fence: int, asked: float) -> Self:
        """The turn with what came of it."""
        return replace(self, won=won, fence=fence, asked=asked)


@dataclass(frozen=True, slots=True)
class Round:
    """What all servers did in one round."""

    number: int
    turns: list[Turn]

    @property
    def winners(self) -> list[Turn]:
        """Those who won: one, if all is well."""
        return [turn for turn in self.turns if turn.won]

    @property
    def aside(self) -> int:
        """How many stepped aside."""
        return len(self.turns) - len(self.winners)

    @property
    def spread(self) -> float:
        """Seconds between the first and the last request."""
        asked = [turn.asked for turn in self.turns]
        return max(asked) - min(asked)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rounds as the logs have them, against what they should be."""

    servers: int
    expected: int
    rounds: list[Round]

    @property
    def races(self) -> int:
        """How many races there were in all."""
        return sum(len(one.turns) for one in self.rounds)

    @property
    def winners(self) -> int:
        """How many races were won in all."""
        return sum(len(one.winners) for one in self.rounds)

    @property
    def doubles(self) -> int:
        """Rounds won by more than one server."""
        return sum(len(one.winners) > 1 for one in self.rounds)

    @property
    def without(self) -> int:
        """Rounds nobody won."""
        return self.expected - sum(bool(one.winners) for one in self.rounds)

    @property
    def fences_grow(self) -> bool:
        """Whether every winner's fence was greater than the one before."""
        fences = [turn.fence for one in self.rounds for turn in one.winners]
        return all(earlier < later for earlier, later in pairwise(fences))

    @property
    def held(self) -> bool:
        """Whether every round had all servers and exactly one winner, and fences only grew."""
        complete = len(self.rounds) == self.expected and all(
            len(one.turns) == self.servers for one in self.rounds
        )
        return complete and not self.without and not self.doubles and self.fences_grow


def count(folder: Path, servers: int, rounds: int) -> Verdict:
    """Read every log in the folder."""
    lines = (line for log in folder.glob("*.log") for line in log.read_text("utf-8").splitlines())
    return verdict_on((Turn.read(line) for line in lines), servers, rounds)


def verdict_on(turns: Iterable[Turn], servers: int, rounds: int) -> Verdict:
    """Sort the turns into rounds."""
    ordered = sorted(turns, key=lambda turn: (turn.round, turn.server))
    grouped = groupby(ordered, key=lambda turn: turn.round)
    return Verdict(servers, rounds, [Round(number, list(group)) for number, group in grouped])
