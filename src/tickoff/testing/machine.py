"""Random operations on a store and on the reference at once: they must answer alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..leases.knowledge import Knowledge
from ..model import Answer, Bid, Ending, Hold, Outcome
from ..names import new_token
from .contract import DAY, TTL, hold_of
from .subjects import Subject, comparable, memory_subject

SERVERS = ("a", "b")
OUTCOMES = (Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT)

servers = st.sampled_from(SERVERS)
any_hold = st.integers(0, 100)
"""Which of the leases granted so far: the oldest is most likely, so zombies abound."""


@dataclass
class Side:
    """One of the two stores, what its servers know, and every lease it ever granted."""

    subject: Subject
    knowledge: dict[str, Knowledge] = field(default_factory=lambda: {name: Knowledge() for name in SERVERS})
    holds: list[Hold] = field(default_factory=list)
    fence: int = 0

    def race(self, server: str, bid: Bid) -> Answer:
        answer = self.subject.store.race([replace(bid, known=self.knowledge[server].of(bid.name))])[0]
        self.knowledge[server].learn(answer.entry)
        return answer

    def granted(self, answer: Answer) -> None:
        """Every new grant has a greater fence than all before, unless the store was made to forget."""
        if answer.ok:
            assert answer.entry.fence > self.fence
            self.fence = answer.entry.fence
            self.holds.append(hold_of(answer))

    def hold(self, which: int) -> Hold:
        hold = self.holds[which]
        return replace(hold, known=self.knowledge[hold.owner].of(hold.name))

    def renew(self, which: int) -> Answer:
        answer = self.subject.store.renew([self.hold(which)])[0]
        self.knowledge[self.holds[which].owner].learn(answer.entry)
        if answer.ok:
            self.holds[which] = replace(self.holds[which], until=answer.entry.until)
        return answer

    def age(self, name: str, ms: int) -> None:
        self.subject.age(name, ms)
        self.holds = [replace(hold, until=hold.until - ms, taken=hold.taken - ms) for hold in self.holds]


def compare_with_memory(subject: Subject, *, examples: int = 40, steps: int = 40) -> None:
    """Run random sequences of operations on the subject and on the memory store; fail where they differ."""

    class Machine(_Machine):
        under_test = subject

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


class _Machine(RuleBasedStateMachine):
    """Two servers and one name: few enough that everything meets everything."""

    under_test: Subject

    @initialize()
    def begin(self) -> None:
        self.name = f"machine-{uuid4().hex}"
        self.sides = (Side(memory_subject()), Side(self.under_test))
        self.start = min(side.subject.store.now() for side in self.sides) - DAY
        self.bids: list[Bid] = []

    @rule(
        server=servers,
        tick=st.one_of(st.just(0), st.integers(1, 4), st.just(99)),
        attempts=st.integers(1, 3),
        takeover=st.booleans(),
        manual=st.booleans(),
    )
    def race(self, server: str, tick: int, attempts: int, takeover: bool, manual: bool) -> None:
        bid = Bid(
            name=self.name,
            token=new_token(),
            owner=server,
            ttl=TTL,
            tick=self._instant(tick),
            attempts=attempts,
            takeover=takeover,
            scheduled=bool(tick),
            manual=manual and bool(tick),
        )
        self.bids.append(bid)
        answers = [side.race(server, bid) for side in self.sides]
        self._agree(answers)
        for side, answer in zip(self.sides, answers, strict=True):
            side.granted(answer)

    @precondition(lambda self: self.sides[0].holds)
    @rule(which=any_hold)
    def race_again(self, which: int) -> None:
        hold = self.sides[0].holds[which % len(self.sides[0].holds)]
        bid = next(bid for bid in self.bids if bid.token == hold.token)
        kept = self.sides[0].subject.store.read([self.name])[0]
        if kept.ok and kept.entry.token == hold.token:
            self._agree([side.race(hold.owner, bid) for side in self.sides])

    @precondition(lambda self: self.sides[0].holds)
    @rule(which=any_hold)
    def renew(self, which: int) -> None:
        which %= len(self.sides[0].holds)
        self._agree([side.renew(which) for side in self.sides])

    @precondition(lambda self: self.sides[0].holds)
    @rule(which=any_hold)
    def release(self, which: int) -> None:
        token = self.sides[0].holds[which % len(self.sides[0].holds)].token
        first, second = (side.subject.store.release(self.name, token) for side in self.sides)
        assert first == second
        self._agree_on_entry()

    @precondition(lambda self: self.sides[0].holds)
    @rule(which=any_hold, outcome=st.sampled_from(OUTCOMES), attempts=st.integers(1, 3))
    def settle(self, which: int, outcome: Outcome, attempts: int) -> None:
        which %= len(self.sides[0].holds)
        endings = [
            Ending(hold=side.hold(which), outcome=outcome, error="e", attempts=attempts)
            for side in self.sides
        ]
        answers = [
            side.subject.store.settle([ending])[0] for side, ending in zip(self.sides, endings, strict=True)
        ]
        self._agree(answers)

    @precondition(lambda self: self.bids)
    @rule(which=any_hold)
    def withdraw(self, which: int) -> None:
        token = self.bids[which % len(self.bids)].token
        first, second = (side.subject.store.withdraw(self.name, token) for side in self.sides)
        assert first == second
        self._agree_on_entry()

    @rule()
    def evict(self) -> None:
        self._agree([side.subject.store.evict(self.name, "ops", "why") for side in self.sides])

    @rule(why=st.sampled_from(["down", None]))
    def steer(self, why: str | None) -> None:
        self._agree([side.subject.store.steer(self.name, "ops", why) for side in self.sides])

    @rule(share=st.sampled_from([0.25, 0.5, 1.1]))
    def time_passes(self, share: float) -> None:
        for side in self.sides:
            side.age(self.name, int(TTL * share))

    @rule()
    def forget(self) -> None:
        for side in self.sides:
            side.subject.forget(self.name)
            side.fence = 0

    def _instant(self, tick: int) -> int:
        """No tick, one of a few in the past, or one that has not come."""
        return self.start + (7 * DAY if tick == 99 else tick * 1000) if tick else 0

    def _agree(self, answers: list[Answer]) -> None:
        """Both stores gave the same answer, and keep the same entry and history."""
        expected, given = (_shown(answer) for answer in answers)
        assert given == expected
        self._agree_on_entry()

    def _agree_on_entry(self) -> None:
        kept = [side.subject.store.read([self.name])[0] for side in self.sides]
        assert comparable(kept[1].entry, kept[1].now) == comparable(kept[0].entry, kept[0].now)
        expected, given = (
            sorted(
                (run.tick, run.owner, run.outcome, run.error, run.attempt)
                for run in side.subject.store.history(self.name)
            )
            for side in self.sides
        )
        assert given == expected


def _shown(answer: Answer) -> dict[str, Any]:
    token = answer.entry.token if answer.entry.live(answer.now) else ""
    return {"ok": answer.ok, "why": answer.why, "token": token}
