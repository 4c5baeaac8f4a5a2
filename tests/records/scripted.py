"""A table in memory that does what it is told, for the steps of the policy in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tickoff.errors import StoreUnreachable
from tickoff.records.backoff import Backoff
from tickoff.records.job import RecordJob
from tickoff.tables.base import Batch, Key, News, Plan, Record, Settled, Swept, Verdict

PLAN = Plan("contacts", "status", result=("answer",))


def job(**options: Any) -> RecordJob:
    """A job over records whose function is never called."""
    defaults: dict[str, Any] = {"name": "enrich", "function": str, "plan": PLAN, "backoff": Backoff(1.0, 8.0)}
    return RecordJob(**{**defaults, **options})


def record(i: int, attempts: int = 0) -> Record:
    """A record without a row."""
    return Record((i,), cast("Any", None), attempts)


def batch(*ids: int, token: str = "token", alone: bool = False, exhausted: bool = False) -> Batch:
    """What a claim got."""
    return Batch(token, tuple(record(i) for i in ids), exhausted, alone)


class Scripted:
    """A `RecordTable`, as far as the policy uses it: claims come from a list, verdicts are noted."""

    address = "memory contacts"

    def __init__(self, *batches: Batch) -> None:
        self.batches = list(batches)
        self.suspects: list[Batch] = []
        self.asked: list[Key | None] = []
        self.sizes: list[int] = []
        self.settled: list[tuple[str, list[Verdict], bool]] = []
        self.given: list[tuple[str, list[Key] | None, bool]] = []
        self.swept: list[bool] = []
        self.answer: Callable[[Sequence[Verdict]], Settled] = _all_written
        self.ours = True
        self.down = False
        self.tell = News(None, frozenset(), suspects=False)

    def claim(self, _token: str, _owner: str, limit: int, _ttl: float, floor: Key | None = None) -> Batch:
        self._up()
        self.asked.append(floor)
        self.sizes.append(limit)
        return self.batches.pop(0) if self.batches else batch(exhausted=True)

    def claim_suspect(self, _token: str, _owner: str, _ttl: float) -> Batch:
        self._up()
        return self.suspects.pop(0) if self.suspects else batch(exhausted=True, alone=True)

    def settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool = False) -> Settled:
        self._up()
        self.settled.append((token, list(verdicts), last))
        return self.answer(verdicts)

    def give_back(self, token: str, keys: Sequence[Key] | None = None, *, last: bool = False) -> int:
        self._up()
        self.given.append((token, None if keys is None else list(keys), last))
        return len(keys or ())

    def renew(self, tokens: Sequence[str], _ttl: float) -> frozenset[str]:
        self._up()
        return frozenset(tokens if self.ours else ())

    def sweep(self, _attempts: int, _wait: float = 0.0, *, deep: bool = False) -> Swept:
        self._up()
        self.swept.append(deep)
        return Swept()

    def news(self, floor: Key | None, seen: frozenset[str] = frozenset()) -> News:
        return News(floor, seen, self.tell.suspects)

    def _up(self) -> None:
        if self.down:
            raise StoreUnreachable("it is down")


def _all_written(verdicts: Sequence[Verdict]) -> Settled:
    return Settled(written=frozenset(verdict.key for verdict in verdicts))
