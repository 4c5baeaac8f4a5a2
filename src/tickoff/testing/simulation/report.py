"""What a simulation saw, and what of it must not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import checker


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
        self.violations += checker.writes_go_on(self.writes)
        if not self.forgot:
            self.violations += checker.fences_grow((grant.name, grant.fence) for grant in self.grants)
            allowed = {expected.job: expected.attempts for expected in expectations}
            self.violations += checker.started_at_most(((s.job, s.tick) for s in self.starts), allowed)
        for expected in expectations:
            done = {end.tick for end in self.ends if end.job == expected.job}
            self.violations += checker.ended_by_now(expected.job, expected.due, done)

    def tale(self) -> str:
        """The seed, what is wrong, and all that happened."""
        wrong = "\n".join(f"  {line}" for line in self.violations) or "  nothing"
        return f"seed {self.seed}: {wrong.strip()}\n" + "\n".join(self.story)
