"""A store out of two primitives: load entries with the store's time, and swap one if nobody changed it.

A new store that can do these two is complete: `rules` says what each request means. Reading the time
before the swap is safe: whatever the entry allowed at that time it still allows, since it is the same.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from .. import rules
from ..errors import StoreUnreachable
from ..model import Answer, Bid, Ending, Entry, Hold, Run

_TRIES = 200
_PATIENT_TRIES = 3


class CasStore(ABC):
    """The primitives of a store, over `load` and `swap`."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the store is, without secrets."""

    @abstractmethod
    def load(self, names: Iterable[str]) -> tuple[int, Mapping[str, Entry]]:
        """The store's time, and the entries there are for these names, in one round trip."""

    @abstractmethod
    def swap(self, old: Entry, new: Entry, runs: Sequence[Run]) -> bool:
        """Put `new` in the place of `old` and the runs into the history, unless the entry has changed."""

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Decide each bid atomically, by the store's clock."""
        return _all(self.take(bids, len(bids)))

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race in the order given until `limit` are won; None for those left undecided."""
        names = [bid.name for bid in bids]
        return self._apply(names, lambda i, entry, now: rules.race(entry, bids[i], now), limit)

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong the leases that are still their holder's."""
        names = [hold.name for hold in holds]
        return _all(self._apply(names, lambda i, entry, now: rules.renew(entry, holds[i], now)))

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Record how ticks ended and let go of their leases."""
        names = [e.hold.name for e in endings]
        return _all(self._apply(names, lambda i, entry, now: rules.settle(entry, endings[i], now)))

    def release(self, name: str, token: str) -> bool:
        """Let go if the token still holds the name; say whether it did."""
        return self._apply_one(name, lambda entry, now: rules.release(entry, token, now)).ok

    def withdraw(self, name: str, token: str) -> bool:
        """Release, and make sure that a race still under way with this token wins nothing."""
        return self._apply_one(name, lambda entry, now: rules.withdraw(entry, token, now)).ok

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take the name from whoever holds it."""
        return self._apply_one(name, lambda entry, now: rules.evict(entry, by, why, now))

    def steer(self, name: str, by: str, why: str | None) -> Answer:
        """Pause a name for a reason, or resume it (None)."""
        return self._apply_one(name, lambda entry, now: rules.steer(entry, by, why, now))

    def read(self, names: Sequence[str]) -> list[Answer]:
        """What is kept of each name; `ok` tells whether it is held right now."""
        now, entries = self.load(names)
        found = [entries.get(name, Entry(name=name)) for name in names]
        return [Answer(entry.live(now), entry, now) for entry in found]

    def _apply_one(self, name: str, step: Callable[[Entry, int], rules.Step]) -> Answer:
        return _all(self._apply([name], lambda _, entry, now: step(entry, now)))[0]

    def _apply(
        self,
        names: Sequence[str],
        step: Callable[[int, Entry, int], rules.Step],
        limit: int | None = None,
    ) -> list[Answer | None]:
        """Run each request's rule on its entry and swap the result in, again where somebody was faster.

        Stops as soon as `limit` were granted.
        """
        answers: dict[int, Answer] = {}
        left = len(names) if limit is None else limit
        waiting = list(range(len(names)))
        for attempt in range(_TRIES):
            now, entries = self.load({names[i] for i in waiting})
            for i in waiting:
                if left == 0:
                    break
                entry = entries.get(names[i], Entry(name=names[i]))
                result = step(i, entry, now)
                if self._commit(entry, result):
                    answers[i] = Answer(result.ok, result.entry, now, result.why)
                    left -= result.ok
            waiting = [i for i in waiting if i not in answers]
            if not waiting or left == 0:
                return [answers.get(i) for i in range(len(names))]
            if attempt >= _PATIENT_TRIES:
                time.sleep(random.uniform(0, 0.002 * attempt))  # noqa: S311 - spreading out, not secrecy
        raise StoreUnreachable(f"{self.address} is too contended: {_TRIES} swaps of one entry were overtaken")

    def _commit(self, old: Entry, step: rules.Step) -> bool:
        if step.entry == old and not step.runs:
            return True
        return self.swap(old, replace(step.entry, version=old.version + 1), step.runs)


def _all(answers: Sequence[Answer | None]) -> list[Answer]:
    """Every answer, where none may be missing."""
    return [answer for answer in answers if answer is not None]
