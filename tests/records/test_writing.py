"""The flusher, the sweeper, the steering and the progress: one step at a time."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

import pytest

from tests.records.scripted import Scripted, batch, job
from tickoff import Tickoff
from tickoff.model import Note
from tickoff.records.claim import Claim
from tickoff.records.flush import Flusher
from tickoff.records.hand import Hand
from tickoff.records.progress import Estimate, Rate, Report, read_report
from tickoff.records.steering import Steering
from tickoff.records.sweeper import Sweeper, interval_of
from tickoff.records.tally import Counts, Tally
from tickoff.stores.memory import MemoryStore
from tickoff.tables.base import Done, Failed, Settled, State


class Writing:
    """A flusher with three answers to write."""

    def __init__(self) -> None:
        described = job(attempts=1)
        self.table = Scripted()
        self.hand = Hand(described)
        self.tally = Tally()
        self.flusher = Flusher(described, cast("Any", self.table), self.hand, self.tally)
        self.hand.on_answers = lambda _urgent: None
        self.hand.add(Claim(batch(1, 2, 3), 0.0, 60.0))
        self.hand.expect(10)
        for i in (1, 2, 3):
            call = self.hand.take(0.0)
            assert call is not None
            self.hand.answer(call, [Done((i,), {"answer": "x"})])


def test_a_claim_is_closed_with_its_last_answer() -> None:
    """All in one flush."""
    writing = Writing()
    assert writing.flusher.step(0.0) is None
    ((token, verdicts, last),) = writing.table.settled
    assert (token, len(verdicts), last) == ("token", 3, True)
    assert writing.tally.counts == Counts(done=3)
    assert writing.hand.empty


def test_an_outage_keeps_the_answers() -> None:
    """They are written by the first step that gets through, once."""
    writing = Writing()
    writing.table.down = True
    assert writing.flusher.step(0.0) is not None
    writing.table.down = False
    writing.flusher.step(1.0)
    assert writing.tally.counts == Counts(done=3)
    assert writing.hand.empty


def test_a_bug_loses_no_answer() -> None:
    """Whatever the table raises."""
    writing = Writing()
    writing.table.answer = cast("Any", None)
    with pytest.raises(TypeError):
        writing.flusher.step(0.0)
    assert writing.hand.unwritten == 3
    assert len(writing.hand.collect()[0].verdicts) == 3


def test_refused_answers_are_counted_and_left_alone() -> None:
    """They are a zombie's."""
    writing = Writing()
    writing.table.answer = lambda verdicts: Settled(
        written=frozenset({(1,)}), refused=frozenset({(2,), (3,)})
    )
    writing.flusher.step(0.0)
    assert writing.tally.counts == Counts(done=1, refused=2)
    assert writing.hand.empty


def test_an_answer_the_database_refuses_is_charged_to_its_record() -> None:
    """With the database's words, in the next flush."""
    writing = Writing()
    writing.table.answer = lambda verdicts: Settled(
        written=frozenset({(1,), (3,)}), culprits={(2,): "value too long"}
    )
    assert writing.flusher.step(0.0) is not None
    writing.table.answer = lambda verdicts: Settled(written=frozenset({(2,)}))
    writing.flusher.step(0.0)
    (verdict,) = writing.table.settled[1][1]
    assert isinstance(verdict, Failed)
    assert "value too long" in verdict.error
    assert writing.tally.counts == Counts(done=2, failed=1)


def test_one_server_wins_each_sweep_and_the_others_pass() -> None:
    """Until the next is due."""
    jobs = Tickoff(MemoryStore())
    table, referee = Scripted(), jobs._ready()
    sweepers = [Sweeper(job(ttl=60.0), "sweep:enrich", cast("Any", table), referee) for _ in range(3)]
    dues = [sweeper.step(0.0) for sweeper in sweepers]
    assert len(table.swept) == 1
    assert all(due is not None and 0 < due <= 30 for due in dues)
    jobs.close()


def test_a_worker_sweeps_when_no_sweep_was_recorded_lately() -> None:
    """The store of leases is away: the records need not wait for it."""

    class Away(MemoryStore):
        def now(self) -> int:
            from tickoff import StoreUnreachable

            raise StoreUnreachable("away")

    jobs = Tickoff(Away())
    table = Scripted()
    sweeper = Sweeper(job(ttl=2.0), "sweep:enrich", cast("Any", table), jobs._ready())
    begun = sweeper._recorded
    sweeper.step(begun + 1.0)
    assert table.swept == []
    sweeper.step(begun + 7.0)
    assert len(table.swept) == 1
    jobs.close()


def test_the_interval_of_the_sweep_follows_the_ttl() -> None:
    """As long as a claim lasts; half a minute at most, a second at least."""
    assert [interval_of(job(ttl=ttl)) for ttl in (0.2, 5.0, 300.0)] == [1.0, 5.0, 30.0]


def test_a_pause_outlives_a_store_that_forgets() -> None:
    """A server that remembers tells it again."""
    store = MemoryStore()
    ours, theirs = Steering("records:x", store), Steering("records:x", store)
    theirs.pause("deploying", "an operator")
    assert ours.read().why == "deploying"
    store._entries.clear()
    assert ours.read().paused
    assert Steering("records:x", store).read().why == "deploying"
    theirs.resume()
    assert not ours.read().paused


def test_progress_is_the_last_count_moved_on_by_the_reports() -> None:
    """Servers that die meanwhile did what they did."""
    estimate = Estimate()
    a, b = Report("a", Counts(done=5)), Report("b", Counts(done=7, failed=1))
    estimate.count({State.PENDING: 90, State.DONE: 12}, [a, b])
    later = [Report("a", Counts(done=15), in_flight=4, rate=2.0, repeat=9), b]
    assert (estimate.progress(later).done, estimate.progress(later).pending) == (22, 76)
    left = estimate.progress([Report("b", Counts(done=8, failed=2), in_flight=6, rate=3.0)])
    assert (left.done, left.failed, left.pending, left.in_flight) == (23, 1, 72, 6)
    assert left.eta == pytest.approx(78 / 3)
    assert left.total == 102


def test_nothing_is_known_of_the_end_while_nothing_moves() -> None:
    """And when nothing is left, it is now."""
    estimate = Estimate()
    estimate.count({State.PENDING: 5}, [])
    assert estimate.progress([]).eta is None
    estimate.count({State.DONE: 5}, [])
    assert estimate.progress([]).eta == 0.0


def test_a_report_is_read_as_it_was_posted_also_by_an_older_program() -> None:
    """Words that are not known yet are passed over."""
    report = Report("me", Counts(done=3, refused=1), in_flight=2, rate=1.5, repeat=7)
    assert read_report(Note("me", report.text(), 0)) == report
    newer = json.dumps({**json.loads(report.text()), "more": 1})
    assert read_report(Note("me", newer, 0)) == report


def test_the_rate_is_that_of_the_last_seconds() -> None:
    """Not of the whole life."""
    rate = Rate(window=10.0)
    assert rate.learn(0, 0.0) == 0.0
    assert rate.learn(100, 10.0) == 10.0
    assert rate.learn(100, 20.0) == 0.0


def test_counts_are_added_by_threads() -> None:
    """None is lost."""
    tally = Tally()
    verdicts = [Done((1,))]
    settled = Settled(written=frozenset({(1,)}))

    def add() -> None:
        for _ in range(500):
            tally.settled(verdicts, settled)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.counts.done == 2000
