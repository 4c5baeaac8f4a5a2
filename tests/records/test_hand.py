"""What is in hand: the bound on repeated calls, and who is woken when."""

from __future__ import annotations

from tests.records.scripted import batch, job
from tickoff.records.claim import Call, Claim, Flush
from tickoff.records.hand import Hand
from tickoff.tables.base import Done

TTL = 60.0


def hand_with(*ids: int, flush: int = 4, **options: int) -> tuple[Hand, Claim]:
    """A hand with one claim taken at 0."""
    hand = Hand(job(**options))
    hand.expect(flush)
    claim = Claim(batch(*ids), 0.0, TTL)
    hand.add(claim)
    return hand, claim


def done(call: Call) -> list[Done]:
    """All its records are done."""
    return [Done(record.key) for record in call.records]


def taken(hand: Hand, now: float = 0.0) -> Call:
    """The next call, which must be there."""
    call = hand.take(now)
    assert call is not None
    return call


def collected(hand: Hand) -> Flush:
    """What is to be written, of the only claim."""
    (flush,) = hand.collect()
    return flush


def test_no_call_starts_while_a_whole_flush_is_unwritten() -> None:
    """Being written counts as unwritten: concurrency + one flush is all that may be repeated."""
    hand, _ = hand_with(*range(10), flush=4, concurrency=3)
    running = [taken(hand) for _ in range(3)]
    for _ in range(4):
        hand.answer(running[0], done(running[0]))
        running = [*running[1:], call] if (call := hand.take(0)) else running[1:]
    unwritten, under_way = hand.unwritten, hand.running
    assert unwritten + under_way == 3 + 4 - 1
    flush = collected(hand)
    assert hand.take(0) is None
    hand.written(flush, ())
    assert hand.take(0) is not None


def test_no_more_answers_are_unwritten_than_the_others_were_told() -> None:
    """What is published as possibly repeated is the bound, also while claims grow."""
    hand, _ = hand_with(*range(10), flush=2, concurrency=1)
    hand.told(hand.at_stake)
    grown: list[int] = []
    hand.on_growth = lambda: grown.append(hand.at_stake)
    hand.expect(4)
    for _ in range(2):
        call = taken(hand)
        hand.answer(call, done(call))
    assert hand.take(0) is None
    assert grown == [4]
    hand.told(grown[0])
    assert hand.take(0) is not None
    hand.expect(1)
    assert (hand.at_stake, hand.take(0)) == (2, None)  # two are unwritten all the same


def test_no_call_starts_past_the_claims_deadline_until_it_is_renewed() -> None:
    """Renewed late, it goes on."""
    hand, claim = hand_with(1, 2)
    assert hand.take(TTL) is None
    hand.renewed([claim], 50.0)
    assert hand.take(TTL) is not None


def test_what_was_not_written_is_collected_again() -> None:
    """With what came meanwhile; nothing is counted twice."""
    hand, _ = hand_with(1, 2)
    first, second = taken(hand), taken(hand)
    hand.answer(first, done(first))
    flush = collected(hand)
    hand.answer(second, done(second))
    hand.not_written(flush)
    again = collected(hand)
    assert {verdict.key for verdict in again.verdicts} == {(1,), (2,)}
    assert again.last
    assert hand.unwritten == 2
    hand.written(again, ())
    assert hand.empty


def test_the_flusher_is_woken_for_answers_that_come_while_it_writes() -> None:
    """Else they would wait for the next flush to be full, and calls for them."""
    hand, _ = hand_with(*range(10), flush=4)
    woken: list[bool] = []
    hand.on_answers = woken.append
    for _ in range(2):
        call = taken(hand)
        hand.answer(call, done(call))
    assert woken == [False, True]  # the first, and half a flush
    hand.collect()
    call = taken(hand)
    hand.answer(call, done(call))
    assert woken == [False, True, False]


def test_the_last_answer_is_not_kept_waiting() -> None:
    """Nothing runs and nothing is ready: no more will come."""
    hand, _ = hand_with(1, 2, flush=100)
    woken: list[bool] = []
    hand.on_answers = woken.append
    for call in (taken(hand), taken(hand)):
        hand.answer(call, done(call))
    assert woken == [False, True]


def test_an_answer_after_the_call_was_given_up_changes_nothing() -> None:
    """Its place is free again by then."""
    hand, _ = hand_with(1, 2, concurrency=1)
    call = taken(hand)
    assert hand.abandon(call, done(call))
    assert hand.stuck
    assert not hand.answer(call, done(call))
    assert not hand.stuck
    assert hand.unwritten == 1


def test_what_was_not_started_goes_back_when_the_claim_is_lost() -> None:
    """What runs is answered all the same, and refused by the database if need be."""
    hand, claim = hand_with(1, 2, 3)
    call = taken(hand)
    hand.lose(claim)
    assert hand.take(0) is None
    assert collected(hand).back == [(2,), (3,)]
    assert hand.answer(call, done(call))


def test_a_flush_that_is_busy_in_part_is_written_later() -> None:
    """The claim stays open until then."""
    hand, _ = hand_with(1, 2)
    calls = [taken(hand), taken(hand)]
    for call in calls:
        hand.answer(call, done(call))
    flush = collected(hand)
    hand.written(flush, [flush.verdicts[1]])
    assert not hand.empty
    assert [verdict.key for verdict in collected(hand).verdicts] == [(2,)]


def test_a_call_without_verdicts_is_made_again_in_two_halves() -> None:
    """And so on, until each record is alone."""
    hand, _ = hand_with(1, 2, 3, per_call=3)
    call = taken(hand)
    assert len(call.records) == 3
    hand.answer(call, ())
    sizes = {len(taken(hand).records), len(taken(hand).records)}
    assert sizes == {1, 2}
    assert hand.take(0) is None


def test_halves_go_back_with_the_rest() -> None:
    """When the work is paused or ends."""
    hand, _ = hand_with(1, 2, 3, 4, per_call=2)
    call = taken(hand)
    hand.answer(call, ())
    hand.drop_ready()
    assert sorted(collected(hand).back) == [(1,), (2,), (3,), (4,)]


def test_closing_gives_back_and_starts_nothing() -> None:
    """Whoever waits for a call is told that there will be none."""
    hand, _ = hand_with(1)
    hand.close()
    assert hand.wait(lambda: 0.0) is None
    assert collected(hand).back == [(1,)]


def test_the_claimer_is_woken_when_the_hand_runs_low_and_when_it_is_empty() -> None:
    """Once for each, however many are taken."""
    hand, _ = hand_with(1, 2, 3, 4, 5, flush=3)
    woken: list[int] = []
    hand.on_low = lambda: woken.append(hand.ready)
    calls = [taken(hand) for _ in range(5)]
    assert woken == [2]
    for call in calls[:3]:
        hand.answer(call, done(call))
    hand.written(collected(hand), ())
    assert woken == [2]
    for call in calls[3:]:
        hand.answer(call, done(call))
    hand.written(collected(hand), ())
    assert woken == [2, 0]
