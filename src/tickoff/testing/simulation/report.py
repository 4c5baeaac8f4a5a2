"""What a simulation saw, and what of it must not be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A tick: the job's name, the instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run of a tick that began, as the job itself saw it."""

    job: str
    tick: int
    fence: int
    attempt: int
    server: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A lease the store gave away."""

    name: str
    token: str
    fence: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the checker holds a job to."""

    job: str
    attempts: int
    """How often a tick may be started at most."""
    due: Sequence[int] = ()
    """Ticks that must have been run to their end, once the faults had stopped."""


@dataclass(slots=True)
class Report:
    """The course of one simulation."""

    seed: int
    starts: list[Start] = field(default_factory=list)
    ends: list[Start] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    writes: list[tuple[str, int]] = field(default_factory=list)
    refused: int = 0
    forgot: bool = False
    calls: int = 0
    story: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def check(self, expectations: Sequence[Expectation]) -> None:
        """Find what must not be."""
        self.violations += _fences(self.grants) if not self.forgot else []
        self.violations += _writes(self.writes)
        for expected in expectations:
            if not self.forgot:
                self.violations += _starts(expected, self.starts)
            self.violations += _done(expected, self.ends)

    def tale(self) -> str:
        """The seed, what is wrong, and all that happened."""
        wrong = "\n".join(f"  {line}" for line in self.violations) or "  nothing"
        return f"seed {self.seed}: {wrong.strip()}\n" + "\n".join(self.story)


def _fences(grants: Sequence[Grant]) -> list[str]:
    """Fences grow with every grant of a name."""
    highest: dict[str, int] = defaultdict(int)
    wrong = []
    for grant in grants:
        if grant.fence <= highest[grant.name]:
            wrong.append(f"{grant.name} was granted with fence {grant.fence} after {highest[grant.name]}")
        highest[grant.name] = max(highest[grant.name], grant.fence)
    return wrong


def _writes(writes: Sequence[tuple[str, int]]) -> list[str]:
    """What the protected resource accepted never goes back."""
    highest: dict[str, int] = defaultdict(int)
    wrong = []
    for job, fence in writes:
        if fence < highest[job]:
            wrong.append(f"a write of {job} with fence {fence} was accepted after one with {highest[job]}")
        highest[job] = max(highest[job], fence)
    return wrong


def _starts(expected: Expectation, starts: Sequence[Start]) -> list[str]:
    """No tick is started more often than its attempts allow."""
    counted = Counter(start.tick for start in starts if start.job == expected.job)
    return [
        f"{expected.job} was started {times} times for the tick {tick}, allowed: {expected.attempts}"
        for tick, times in counted.items()
        if times > expected.attempts
    ]


def _done(expected: Expectation, ends: Sequence[Start]) -> list[str]:
    """What was due after the faults is done."""
    done = {end.tick for end in ends if end.job == expected.job}
    return [f"{expected.job} was not run for the tick {tick}" for tick in expected.due if tick not in done]
