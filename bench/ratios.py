"""Side by side: contenders take turns, and what counts is the ratio between neighbours in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

Times = dict[str, list[float]]
"""Seconds per cycle by contender, one figure a round."""


@dataclass(frozen=True)
class Contender:
    """Something to be measured: runs so many cycles and says how many seconds they took."""

    label: str
    run: Callable[[int], float]


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Rule:
    """What is compared with what; without a limit it is for information."""

    of: str
    to: str
    limit: float | None = None


@dataclass(frozen=True)
class Verdict:
    """A rule, measured."""

    rule: Rule
    ratio: Spread

    @property
    def missed(self) -> bool:
        """Whether there was a limit and the median ratio is above it."""
        return self.rule.limit is not None and self.ratio.median > self.rule.limit


@dataclass(frozen=True)
class Section:
    """What was measured together, and what follows from it."""

    title: str
    times: Times
    rules: Sequence[Rule]
    note: str = ""
    spoilt: bool = False
    """Whether something happened that must not, as the note tells."""

    @property
    def verdicts(self) -> list[Verdict]:
        """Every rule with its ratio."""
        return [Verdict(rule, ratio(self.times, rule)) for rule in self.rules]


def take_turns(contenders: Sequence[Contender], rounds: int, cycles: int) -> Times:
    """Run all in every round: half of the cycles forwards, half backwards, so that a drift cancels out."""
    for contender in contenders:
        contender.run(cycles)
    times: Times = {contender.label: [] for contender in contenders}
    half = max(1, cycles // 2)
    for turn in range(rounds):
        order = _rotated(contenders, turn)
        spent = dict.fromkeys(times, 0.0)
        for contender in (*order, *reversed(order)):
            spent[contender.label] += contender.run(half)
        for label, seconds in spent.items():
            times[label].append(seconds / (2 * half))
    return times


def ratio(times: Times, rule: Rule) -> Spread:
    """The median of the per-round ratios, and their quartiles."""
    return spread([ours / theirs for ours, theirs in zip(times[rule.of], times[rule.to], strict=True)])


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; of a single value, that value."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Spread(median(values), low, high)


def _rotated(contenders: Sequence[Contender], turn: int) -> list[Contender]:
    start = turn % len(contenders)
    return [*contenders[start:], *contenders[:start]]
