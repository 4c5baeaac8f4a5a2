"""The reference store under watch: a name promised to somebody until then is nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...model import Answer, Bid, Ending, Hold
from ...stores.memory import MemoryStore
from .hub import Hub
from .report import Grant, Report
from .wire import Weather


@dataclass(slots=True)
class _Word:
    """What the store last promised for a name: to which token, until when."""

    token: str
    until: int


class WatchedStore(MemoryStore):
    """Writes down every grant, and every word of the store's that contradicts an earlier one."""

    def __init__(self, hub: Hub, weather: Weather, report: Report) -> None:
        self._hub = hub
        self._weather = weather
        super().__init__(clock=self._referee)
        self._report = report
        self._words: dict[str, _Word] = {}
        self._granted: set[str] = set()
        self._withdrawn: set[str] = set()

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race; a name that was promised to somebody is nobody else's."""
        answers = super().take(bids, limit)
        for bid, answer in zip(bids, answers, strict=True):
            if answer is not None and answer.ok:
                self._won(bid, answer)
        return answers

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Renew; nobody renews what was promised to another."""
        answers = super().renew(holds)
        for hold, answer in zip(holds, answers, strict=True):
            if answer.ok:
                self._promise(hold.name, hold.token, answer, "renewed for")
        return answers

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Settle; only one's own promise ends by it."""
        for ending in endings:
            self._freed(ending.hold.name, ending.hold.token)
        return super().settle(endings)

    def release(self, name: str, token: str) -> bool:
        """Let go; only one's own promise ends by it."""
        self._freed(name, token)
        return super().release(name, token)

    def withdraw(self, name: str, token: str) -> bool:
        """Take back; only one's own promise ends by it, and the token wins nothing any more."""
        self._freed(name, token)
        self._withdrawn.add(token)
        return super().withdraw(name, token)

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take it from whoever holds it: the promise ends by it."""
        self._words.pop(name, None)
        return super().evict(name, by, why)

    def steer_at_random(self) -> None:
        """An operator pauses a name, resumes it, or takes it from its holder."""
        names = self.names()
        if not names:
            return
        name = self._hub.random.choice(names)
        verb = self._hub.random.choice(("pause", "resume", "release"))
        self._hub.tell(f"an operator: {verb} {name}")
        if verb == "release":
            self.evict(name, "operator", "a whim")
        else:
            self.steer(name, "operator", "a whim" if verb == "pause" else None)

    def go_on(self) -> None:
        """Nothing is paused any more."""
        for name in self.names():
            self.steer(name, "operator", None)

    def lose_everything(self) -> None:
        """Forget all, promises included: from then on they bind nobody."""
        self._report.forgot = True
        self.forget_connections()
        self._words = {}

    def _referee(self) -> int:
        """The clock of the store, whatever those think who ask it."""
        return int((self._hub.now + self._weather.store_skew) * 1000)

    def _won(self, bid: Bid, answer: Answer) -> None:
        self._promise(bid.name, bid.token, answer, "granted to")
        if bid.token in self._withdrawn and not self._report.forgot:
            self._wrong(f"{bid.name} was granted to {bid.token[:6]}, which was withdrawn")
        if bid.token not in self._granted:
            self._granted.add(bid.token)
            grant = Grant(name=bid.name, token=bid.token, fence=answer.entry.fence, at=self._hub.now)
            self._report.grants.append(grant)

    def _promise(self, name: str, token: str, answer: Answer, verb: str) -> None:
        word, now = self._words.get(name), self._referee()
        if word is not None and word.token != token and word.until > now and not self._report.forgot:
            left = f"{word.token[:6]}'s for {word.until - now} ms more"
            self._wrong(f"{name} was {verb} {token[:6]} while it was {left}")
        self._words[name] = _Word(token, answer.entry.until)

    def _wrong(self, line: str) -> None:
        """Note it, and in the story where it happened."""
        self._report.violations.append(line)
        self._hub.tell(f"WRONG: {line}")

    def _freed(self, name: str, token: str) -> None:
        word = self._words.get(name)
        if word is not None and word.token == token:
            del self._words[name]
