"""When to claim, how much, and from where; suspects alone."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.records.scripted import Scripted, batch, job
from tickoff.records.appetite import Appetite
from tickoff.records.claim import Call
from tickoff.records.claimer import Claimer
from tickoff.records.floor import Floor
from tickoff.records.hand import Hand
from tickoff.records.renewal import Renewal
from tickoff.tables.base import Done, News


class Standing:
    """A claimer whose steps the test takes itself."""

    def __init__(self, table: Scripted, **options: Any) -> None:
        described = job(**options)
        self.table = table
        self.hand = Hand(described)
        self.renewal = Renewal(described, cast("Any", table), self.hand)
        self.claimer = Claimer(described, cast("Any", table), self.hand, self.renewal)
        self.claimer._allowed = True
        self.hand.on_low = lambda: None
        self.renewal._loop = cast("Any", SimpleNamespace(wake_by=lambda _due: None, stop=lambda: None))

    def step(self, now: float) -> float | None:
        return self.claimer.step(now)

    def work(self, now: float) -> list[Call]:
        """Take, answer and write all there is."""
        calls = []
        while (call := self.hand.take(now)) is not None:
            calls.append(call)
            self.hand.answer(call, [Done(record.key) for record in call.records])
            for flush in self.hand.collect():
                self.hand.written(flush, ())
        return calls

    def stop(self) -> None:
        self.claimer.stop()
        self.renewal.stop()


@pytest.fixture
def standing() -> Iterator[list[Standing]]:
    """Those made by the test, stopped at its end."""
    made: list[Standing] = []
    yield made
    for one in made:
        one.stop()


def test_the_next_batch_is_claimed_above_the_highest_key(standing: list[Standing]) -> None:
    """So that what is done is not walked again."""
    one = Standing(Scripted(batch(1, 2), batch(3, 4, token="b")), concurrency=2)
    standing.append(one)
    one.step(1.0)
    one.work(1.0)
    one.step(1.1)
    assert one.table.asked == [None, (2,)]


def test_one_batch_is_claimed_ahead_and_no_more(standing: list[Standing]) -> None:
    """Not more than can be worked soon."""
    one = Standing(Scripted(batch(1, 2), batch(3, 4, token="b")), concurrency=2)
    standing.append(one)
    one.step(1.0)
    one.step(1.1)
    assert len(one.table.asked) == 1  # nothing was taken from the first one yet
    one.hand.take(1.1)
    one.step(1.2)
    assert len(one.table.asked) == 2


def test_suspects_wait_for_an_empty_hand_and_nothing_is_claimed_beside_them(standing: list[Standing]) -> None:
    """A crash of theirs is nobody else's."""
    one = Standing(Scripted(batch(1, exhausted=True)))
    standing.append(one)
    one.table.suspects = [batch(7, token="s", alone=True)]
    one.table.tell = News(None, frozenset(), suspects=True)
    one.claimer._suspects_at = 1e9  # they are not due yet
    one.step(1.0)
    call = one.hand.take(1.0)
    assert call is not None
    one.claimer._suspects_at = 0.0
    one.step(1.1)
    assert one.table.suspects  # the first is still running
    one.hand.answer(call, [Done((1,))])
    for flush in one.hand.collect():
        one.hand.written(flush, ())
    one.step(1.2)
    assert not one.table.suspects
    asked = len(one.table.asked)
    one.hand.take(1.2)
    one.claimer._suspects_next = False  # its time is up
    one.claimer._suspects_at = 1e9
    one.step(1.3)
    assert len(one.table.asked) == asked  # the suspect is running


def test_suspects_give_way_to_others_after_a_tenth_of_the_ttl(standing: list[Standing]) -> None:
    """Many slow ones must not hold up all the rest."""
    one = Standing(Scripted(batch(1)), ttl=60.0)
    standing.append(one)
    one.table.suspects = [batch(i, token=f"s{i}", alone=True) for i in (7, 8)]
    one.table.tell = News(None, frozenset(), suspects=True)
    one.step(1.0)
    assert [claim.alone for claim in one.hand.claims()] == [True]
    one.work(8.0)
    one.step(8.0)
    one.step(8.1)
    assert [claim.alone for claim in one.hand.claims()] == [False]


def test_forbidden_to_claim_it_gives_back_what_was_not_started(standing: list[Standing]) -> None:
    """And claims nothing."""
    one = Standing(Scripted(batch(1, 2, 3)), concurrency=3)
    standing.append(one)
    one.step(1.0)
    one.hand.take(1.0)
    one.claimer.forbid()
    (flush,) = one.hand.collect()
    assert flush.back == [(2,), (3,)]
    assert one.step(2.0) is None


def test_an_outage_is_waited_out(standing: list[Standing]) -> None:
    """It comes back by itself."""
    one = Standing(Scripted(batch(1)))
    standing.append(one)
    one.table.down = True
    assert one.step(1.0) is not None
    one.table.down = False
    one.step(3.0)
    assert one.hand.ready == 1


def test_a_lost_claim_is_found_out_by_its_renewal(standing: list[Standing]) -> None:
    """At a third of its TTL; what was not started goes back."""
    one = Standing(Scripted(batch(1, 2)), concurrency=2, ttl=30.0)
    standing.append(one)
    one.step(0.0)
    assert one.renewal.step(9.0) == pytest.approx(10.0)
    one.table.ours = False
    one.renewal.step(10.0)
    assert one.hand.take(10.0) is None
    assert one.hand.collect()[0].back == [(1,), (2,)]


def test_the_floor_begins_anew_at_the_end_and_rests_after_a_walk_in_vain() -> None:
    """A walk from the beginning costs what it costs; an idle fleet rests fifty times as long."""
    floor = Floor(every=300.0)
    assert floor.begin(0.0) is None
    assert not floor.learn(batch(5), 0.1, 0.0)
    assert floor.begin(10.0) == (5,)
    assert not floor.learn(batch(9, exhausted=True), 0.1, 10.0)  # the end: from the beginning once more
    assert floor.begin(10.1) is None
    assert floor.learn(batch(exhausted=True), 0.1, 10.1)
    assert floor.begin(11.0) == (9,)
    assert floor.learn(batch(exhausted=True), 0.001, 11.0)  # only new rows are looked for
    assert not floor.learn(batch(exhausted=True), 0.001, 15.2)
    assert floor.begin(15.2) is None


def test_the_floor_begins_anew_every_ttl_also_in_the_middle() -> None:
    """Retried rows below it don't starve under an inflow."""
    floor = Floor(every=60.0)
    floor.begin(0.0)
    floor.learn(batch(500), 0.01, 0.0)
    assert floor.begin(59.0) == (500,)
    assert floor.begin(60.0) is None


def test_the_floor_is_lowered_by_what_others_did_behind_it() -> None:
    """The database says to where: only it can compare keys."""
    floor = Floor(every=60.0)
    floor.begin(0.0)
    floor.learn(batch(500), 0.01, 0.0)
    floor.lower((3,))
    assert floor.begin(1.0) == (3,)


def test_a_claim_holds_half_a_second_of_work() -> None:
    """It grows by at most four times, never above a thousand, never below what runs at once."""
    appetite = Appetite(4)
    assert appetite.measure(0, 1.0) == 4
    assert appetite.measure(1000, 2.0) == 16
    assert appetite.measure(11_000, 3.0) == 64
    assert [appetite.measure(11_000 + 100_000 * i, 3.0 + i) for i in (1, 2, 3)] == [256, 1000, 1000]
    assert appetite.measure(311_020, 7.0) == 10
    assert appetite.measure(311_021, 8.0) == 4


def test_a_claim_that_follows_another_at_once_does_not_take_the_work_for_slow() -> None:
    """All calls wait for a flush then: a dozen records finished in between say nothing of the rate."""
    appetite = Appetite(at_once=1)
    appetite.measure(0, 100.0)
    for finished in range(1_000, 9_000, 1_000):
        size = appetite.measure(finished, 100.0 + finished / 10_000)
    assert size == 1000
    assert appetite.measure(8_012, 100.9) == 1000
    assert appetite.measure(8_013, 103.0) < 1000, "two seconds with hardly a record tell enough"
