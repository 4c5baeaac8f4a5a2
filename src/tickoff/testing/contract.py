"""The contract of a store: what every one of them does, whatever it is made of."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from uuid import uuid4

import pytest

from ..lending import Loan
from ..model import Answer, Bid, Ending, Hold, Known, Outcome, Why, held
from ..names import new_token
from ..stores.base import LeaseStore
from .subjects import Subject

TTL = 60_000
DAY = 24 * 3600 * 1000


class LeaseStoreContract:
    """Inherit this and provide a fixture `subject`; each test works on a name of its own."""

    @pytest.fixture
    def subject(self) -> Subject:
        """The store under test."""
        raise NotImplementedError("override the fixture `subject` with a Subject of your store")

    @pytest.fixture
    def store(self, subject: Subject) -> LeaseStore:
        """The store itself."""
        return subject.store

    @pytest.fixture
    def name(self) -> str:
        """A name nobody has used."""
        return f"contract-{uuid4().hex}"

    # Winning and losing

    def test_a_free_name_is_won(self, store: LeaseStore, name: str) -> None:
        """The winner gets a lease that ends one TTL after the store's present."""
        answer = race(store, name, owner="a")
        assert answer.ok
        assert answer.why is None
        assert answer.entry.owner == "a"
        assert abs(answer.entry.until - (answer.now + TTL)) < 1000
        assert answer.entry.fence > 0

    def test_a_held_name_is_lost_and_says_by_whom(self, store: LeaseStore, name: str) -> None:
        """The loser learns who holds the name and until when."""
        won = race(store, name, owner="a")
        lost = race(store, name, owner="b")
        assert not lost.ok
        assert lost.why is Why.HELD
        assert lost.entry.owner == "a"
        assert lost.entry.until == won.entry.until

    def test_racing_again_with_the_own_token_finds_the_win(self, store: LeaseStore, name: str) -> None:
        """A lost reply is recovered by the same token: same lease, same fence, not prolonged."""
        bid = a_bid(name)
        first, again = store.race([bid])[0], store.race([bid])[0]
        assert first.ok
        assert again.ok
        assert again.entry.fence == first.entry.fence
        assert again.entry.until == first.entry.until

    def test_an_expired_lease_may_be_won_by_another(self, subject: Subject, name: str) -> None:
        """A holder that died frees the name by its TTL, no earlier."""
        race(subject.store, name)
        subject.age(name, TTL - 5000)
        assert not race(subject.store, name).ok
        subject.age(name, 6000)
        assert race(subject.store, name).ok

    def test_fences_only_grow(self, subject: Subject, name: str) -> None:
        """Every grant has a greater fence than all before, also after expiry and in the same millisecond."""
        fences = []
        for _ in range(5):
            won = race(subject.store, name)
            fences.append(won.entry.fence)
            subject.store.release(name, won.entry.token)
        race(subject.store, name)
        subject.age(name, TTL + 1)
        fences.append(race(subject.store, name).entry.fence)
        assert fences == sorted(set(fences))
        assert fences[0] > 1_600_000_000_000

    def test_many_names_are_raced_at_once(self, store: LeaseStore, name: str) -> None:
        """One call decides many names, each for itself, in the order asked."""
        names = [f"{name}-{i}" for i in range(20)]
        race(store, names[3], owner="other")
        answers = store.race([a_bid(n) for n in names])
        assert [answer.entry.name for answer in answers] == names
        assert [i for i, answer in enumerate(answers) if not answer.ok] == [3]

    def test_no_more_are_taken_than_there_are_slots_for(self, store: LeaseStore, name: str) -> None:
        """Of many bids as many are won as the limit allows, in their order; the other names stay free."""
        bids = [replace(a_bid(f"{name}-{i}"), tick=1000, scheduled=True) for i in range(5)]
        taken = store.take(bids, 2)
        assert len(taken) == 5
        assert [answer is not None and answer.ok for answer in taken] == [True, True, False, False, False]
        assert not any(kept.ok for kept in store.read([bid.name for bid in bids[2:]]))

    def test_the_limit_holds_for_however_many_bids(self, store: LeaseStore, name: str) -> None:
        """Of hundreds, most of them held, no more are won than there are slots for, and in their order."""
        bids = [replace(a_bid(f"{name}-{i}"), tick=1000, scheduled=True) for i in range(300)]
        store.race([replace(bid, token=new_token()) for bid in bids[:249]])
        taken = store.take(bids, 2)
        assert [i for i, answer in enumerate(taken) if answer is not None and answer.ok] == [249, 250]
        assert not any(kept.ok for kept in store.read([bid.name for bid in bids[251:]]))

    def test_what_was_left_undecided_can_be_taken_later(self, store: LeaseStore, name: str) -> None:
        """Lost bids are passed over, and every trip decides some: in the end all that is free is won."""
        race(store, f"{name}-0")
        race(store, f"{name}-1")
        left = [a_bid(f"{name}-{i}") for i in range(5)]
        won: list[str] = []
        while left:
            answers = store.take(left, 2)
            assert any(answer is not None for answer in answers)
            won += [answer.entry.name for answer in answers if answer is not None and answer.ok]
            left = [bid for bid, answer in zip(left, answers, strict=True) if answer is None]
        assert won == [f"{name}-{i}" for i in (2, 3, 4)]

    def test_taking_with_no_slot_free_wins_nothing(self, store: LeaseStore, name: str) -> None:
        """A limit of nought leaves everything as it is."""
        assert not any(store.take([a_bid(name)], 0))
        assert not store.read([name])[0].ok

    def test_one_winner_among_threads(self, store: LeaseStore, name: str) -> None:
        """However many race at once, exactly one wins each round."""
        rounds, racers = 20, 8
        wins: list[list[bool]] = [[] for _ in range(rounds)]
        gate = threading.Barrier(racers)

        def compete() -> None:
            for i in range(rounds):
                gate.wait()
                wins[i].append(race(store, f"{name}-{i}").ok)

        threads = [threading.Thread(target=compete) for _ in range(racers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [sum(won) for won in wins] == [1] * rounds
        assert all(len(won) == racers for won in wins)

    # Letting go

    def test_release_frees_the_name(self, store: LeaseStore, name: str) -> None:
        """What was let go can be won at once."""
        won = race(store, name)
        assert store.release(name, won.entry.token)
        assert not store.read([name])[0].ok
        assert race(store, name).ok

    def test_release_with_a_foreign_token_does_nothing(self, store: LeaseStore, name: str) -> None:
        """Nobody frees somebody else's lease."""
        won = race(store, name)
        assert not store.release(name, new_token())
        assert store.read([name])[0].entry.token == won.entry.token

    def test_a_late_release_does_not_free_the_next_holder(self, subject: Subject, name: str) -> None:
        """A holder that comes back after its TTL finds that the name is another's, and leaves it alone."""
        late = race(subject.store, name)
        subject.age(name, TTL + 1)
        after = race(subject.store, name)
        assert not subject.store.release(name, late.entry.token)
        assert subject.store.read([name])[0].entry.token == after.entry.token

    def test_release_after_expiry_is_not_ours_any_more(self, subject: Subject, name: str) -> None:
        """A lease that ran out was not released in time, even if nobody took it."""
        late = race(subject.store, name)
        subject.age(name, TTL + 1)
        assert not subject.store.release(name, late.entry.token)

    def test_a_repeated_release_is_recognised(self, store: LeaseStore, name: str) -> None:
        """When the answer to a release was lost, asking again does not look like a lost lease."""
        won = race(store, name)
        assert store.release(name, won.entry.token)
        assert store.release(name, won.entry.token)

    # Renewal

    def test_renewal_prolongs(self, subject: Subject, name: str) -> None:
        """A renewed lease lasts one TTL from the renewal."""
        won = race(subject.store, name)
        subject.age(name, TTL - 5000)
        renewed = subject.store.renew([hold_of(won)])[0]
        assert renewed.ok
        assert renewed.entry.fence == won.entry.fence
        assert abs(renewed.entry.until - (renewed.now + TTL)) < 1000
        subject.age(name, TTL - 5000)
        assert not race(subject.store, name).ok

    def test_renewal_can_change_the_ttl(self, store: LeaseStore, name: str) -> None:
        """The new TTL counts from now."""
        won = race(store, name)
        renewed = store.renew([replace(hold_of(won), ttl=10 * TTL)])[0]
        assert renewed.ok
        assert abs(renewed.entry.until - (renewed.now + 10 * TTL)) < 1000

    def test_renewal_with_a_foreign_token_is_refused(self, store: LeaseStore, name: str) -> None:
        """Nobody prolongs, or takes over, somebody else's lease by renewing."""
        won = race(store, name)
        thief = replace(hold_of(won), token=new_token(), owner="thief")
        assert not store.renew([thief])[0].ok
        kept = store.read([name])[0].entry
        assert (kept.token, kept.until) == (won.entry.token, won.entry.until)

    def test_renewal_after_expiry_is_refused(self, subject: Subject, name: str) -> None:
        """A lease that ran out is gone, whether or not somebody else has it by now."""
        late = race(subject.store, name)
        subject.age(name, TTL + 1)
        aged = replace(hold_of(late), until=hold_of(late).until - TTL - 1)
        assert not subject.store.renew([aged])[0].ok
        after = race(subject.store, name)
        assert not subject.store.renew([aged])[0].ok
        assert subject.store.read([name])[0].entry.token == after.entry.token

    def test_many_leases_are_renewed_at_once(self, store: LeaseStore, name: str) -> None:
        """One call renews those that are still ours and refuses the others, in the order asked."""
        names = [f"{name}-{i}" for i in range(5)]
        holds = [hold_of(answer) for answer in store.race([a_bid(n) for n in names])]
        store.release(names[2], holds[2].token)
        answers = store.renew(holds)
        assert [answer.ok for answer in answers] == [True, True, False, True, True]
        assert [answer.entry.name for answer in answers] == names

    # A race given up

    def test_a_withdrawn_race_wins_nothing_when_it_arrives_later(self, store: LeaseStore, name: str) -> None:
        """The tombstone of a token outlives the withdrawal; other tokens are not concerned."""
        bid = a_bid(name)
        store.withdraw(name, bid.token)
        assert not store.race([bid])[0].ok
        assert race(store, name).ok

    def test_a_withdrawn_race_for_a_name_had_before_wins_nothing(self, store: LeaseStore, name: str) -> None:
        """Knowing the name from an earlier lease does not help a withdrawn token."""
        before = race(store, name)
        store.release(name, before.entry.token)
        bid = replace(a_bid(name), known=Known(fence=before.entry.fence, ttl=TTL))
        store.withdraw(name, bid.token)
        assert not store.race([bid])[0].ok
        assert race(store, name, known=bid.known).ok

    def test_a_withdrawn_race_for_a_tick_wins_nothing(self, store: LeaseStore, name: str) -> None:
        """Neither the first one of a name, nor one that nothing else stands in the way of."""
        tick = store.now() - 1000
        for instant in (tick, tick + 500):
            bid = replace(a_bid(name), tick=instant, scheduled=True)
            store.withdraw(name, bid.token)
            assert not store.race([bid])[0].ok
            assert store.settle([ending(race(store, name, tick=instant))])[0].ok

    def test_withdrawing_a_race_that_was_won_lets_go(self, store: LeaseStore, name: str) -> None:
        """The withdrawal of a win frees the name; the same token cannot win it again."""
        bid = a_bid(name)
        assert store.race([bid])[0].ok
        assert store.withdraw(name, bid.token)
        assert not store.race([bid])[0].ok
        assert race(store, name).ok

    def test_a_withdrawal_does_not_touch_another_holder(self, store: LeaseStore, name: str) -> None:
        """Withdrawing one's own race leaves the winner alone."""
        won = race(store, name)
        assert not store.withdraw(name, new_token())
        assert store.read([name])[0].entry.token == won.entry.token

    def test_a_tombstone_does_not_last_for_ever(self, subject: Subject, name: str) -> None:
        """After an hour no request is still on its way; the tombstone is dropped."""
        bid = a_bid(name)
        subject.store.withdraw(name, bid.token)
        subject.age(name, 3600 * 1000 + 1)
        assert subject.store.race([bid])[0].ok

    # Ticks

    def test_a_tick_is_won_once_and_for_all(self, store: LeaseStore, name: str) -> None:
        """A late server that fires a finished tick is told that it is done, by whom and how."""
        tick = store.now() - 1000
        won = race(store, name, tick=tick, owner="a")
        assert won.ok
        assert store.settle([Ending(hold=hold_of(won), outcome=Outcome.OK)])[0].ok
        late = race(store, name, tick=tick, owner="b")
        assert late.why is Why.DONE
        assert (late.entry.outcome, late.entry.outcome_by) == (Outcome.OK, "a")
        assert race(store, name, tick=tick - 5).why is Why.DONE
        assert race(store, name, tick=tick + 500).ok

    def test_racing_again_for_a_tick_finds_the_win(self, store: LeaseStore, name: str) -> None:
        """As for a lock: same lease, same fence, and no second attempt."""
        bid = replace(a_bid(name), tick=store.now() - 1000, scheduled=True)
        first, again = store.race([bid])[0], store.race([bid])[0]
        assert again.ok
        assert (again.entry.fence, again.entry.attempt) == (first.entry.fence, 1)

    def test_a_tick_being_run_is_held(self, store: LeaseStore, name: str) -> None:
        """Losers of a running tick learn which tick it is."""
        tick = store.now() - 1000
        race(store, name, tick=tick, owner="a")
        lost = race(store, name, tick=tick)
        assert lost.why is Why.HELD
        assert lost.entry.tick == tick

    def test_the_future_is_refused_by_the_clock_of_the_store(self, store: LeaseStore, name: str) -> None:
        """A server whose clock runs ahead is told that it is too early, and leaves no mark."""
        tick = store.now() + 60_000
        early = race(store, name, tick=tick)
        assert early.why is Why.TOO_EARLY
        assert store.read([name])[0].entry.decided == 0

    def test_a_tick_in_the_future_cannot_be_won_even_if_the_name_is_known(
        self, store: LeaseStore, name: str
    ) -> None:
        """Too early is too early, also for a name that exists already."""
        store.release(name, race(store, name).entry.token)
        assert race(store, name, tick=store.now() + 60_000).why is Why.TOO_EARLY

    def test_a_crashed_tick_is_not_started_again(self, subject: Subject, name: str) -> None:
        """By default nobody touches a half-finished run; the next tick starts clean, the history tells."""
        store = subject.store
        tick = store.now() - 5000
        race(store, name, tick=tick, owner="a")
        subject.age(name, TTL + 1)
        again = race(store, name, tick=tick)
        assert again.why is Why.DONE
        assert again.entry.crashed(again.now)
        assert race(store, name, tick=tick + 1000).ok
        assert [(run.tick, run.outcome, run.owner) for run in store.history(name)] == [
            (tick, Outcome.CRASHED, "a")
        ]

    def test_attempts_alone_do_not_restart_a_crashed_tick(self, subject: Subject, name: str) -> None:
        """Attempts are for failures; a crash is taken over only where that was asked for."""
        store = subject.store
        tick = store.now() - 5000
        race(store, name, tick=tick, attempts=3)
        subject.age(name, TTL + 1)
        assert race(store, name, tick=tick, attempts=3).why is Why.DONE

    def test_a_crashed_tick_is_taken_over_where_wanted(self, subject: Subject, name: str) -> None:
        """With takeover, a crash charges an attempt, until they are used up."""
        store = subject.store
        tick = store.now() - 5000
        for attempt in (1, 2, 3):
            won = race(store, name, tick=tick, takeover=True, attempts=3)
            assert won.ok
            assert won.entry.attempt == attempt
            subject.age(name, TTL + 1)
        assert race(store, name, tick=tick, takeover=True, attempts=3).why is Why.DONE
        assert race(store, name, tick=tick + 1, takeover=True, attempts=3).entry.attempt == 1

    def test_a_failed_tick_is_retried_while_attempts_are_left(self, store: LeaseStore, name: str) -> None:
        """A failure with attempts left opens the tick again for any server."""
        tick = store.now() - 5000
        for attempt in (1, 2):
            won = race(store, name, tick=tick, attempts=2)
            assert won.entry.attempt == attempt
            ending = Ending(hold=hold_of(won), outcome=Outcome.FAILED, error="boom", attempts=2)
            assert store.settle([ending])[0].ok
        assert race(store, name, tick=tick, attempts=2).why is Why.DONE
        outcomes = [(run.outcome, run.error, run.attempt) for run in store.history(name)]
        assert outcomes == [(Outcome.FAILED, "boom", 2), (Outcome.FAILED, "boom", 1)]

    def test_only_the_current_tick_is_retried(self, store: LeaseStore, name: str) -> None:
        """Once a later tick is decided, a failed one is over."""
        tick = store.now() - 5000
        won = race(store, name, tick=tick, attempts=9)
        store.settle([Ending(hold=hold_of(won), outcome=Outcome.FAILED, attempts=9)])
        later = race(store, name, tick=tick + 1000)
        store.settle([Ending(hold=hold_of(later), outcome=Outcome.OK)])
        assert race(store, name, tick=tick, attempts=9).why is Why.DONE

    def test_a_tick_given_back_unstarted_may_be_started_by_another(
        self, store: LeaseStore, name: str
    ) -> None:
        """Releasing without an outcome reopens the tick and charges nothing."""
        tick = store.now() - 5000
        won = race(store, name, tick=tick)
        assert store.release(name, won.entry.token)
        again = race(store, name, tick=tick)
        assert again.ok
        assert again.entry.attempt == 1
        store.settle([ending(won)])
        assert store.read([name])[0].entry.token == again.entry.token
        assert store.history(name) == []

    def test_since_is_the_last_success(self, store: LeaseStore, name: str) -> None:
        """A winner learns which tick succeeded last; failures do not count."""
        tick = store.now() - 10_000
        for offset, outcome in ((0, Outcome.OK), (1000, Outcome.FAILED)):
            won = race(store, name, tick=tick + offset)
            store.settle([Ending(hold=hold_of(won), outcome=outcome)])
        assert race(store, name, tick=tick + 2000).entry.since == tick

    def test_a_tick_due_while_the_former_one_runs_is_skipped(self, store: LeaseStore, name: str) -> None:
        """An overlap is decided in the same step, recorded, and never caught up."""
        tick = store.now() - 10_000
        running = race(store, name, tick=tick, owner="a", scheduled=True)
        overlap = race(store, name, tick=tick + 1000, owner="b", scheduled=True)
        assert overlap.why is Why.HELD
        assert store.settle([Ending(hold=hold_of(running), outcome=Outcome.OK)])[0].ok
        late = race(store, name, tick=tick + 1000)
        assert (late.why, late.entry.outcome) == (Why.DONE, Outcome.SKIPPED)
        lines = [(run.tick, run.outcome) for run in store.history(name)]
        assert lines == [(tick + 1000, Outcome.SKIPPED), (tick, Outcome.OK)]
        assert race(store, name, tick=tick + 2000).entry.since == tick

    def test_a_repeated_settlement_is_recognised(self, store: LeaseStore, name: str) -> None:
        """When the answer to a settlement was lost, asking again changes nothing and is not refused."""
        won = race(store, name, tick=store.now() - 1000)
        ending = Ending(hold=hold_of(won), outcome=Outcome.OK)
        assert store.settle([ending])[0].ok
        assert store.settle([ending])[0].ok
        assert len(store.history(name)) == 1

    def test_a_late_settlement_is_refused_and_recorded_as_lost(self, subject: Subject, name: str) -> None:
        """A zombie neither moves the marks nor frees the next holder; the history tells of it."""
        store = subject.store
        tick = store.now() - 5000
        zombie = race(store, name, tick=tick, takeover=True, attempts=3, owner="zombie")
        subject.age(name, TTL + 1)
        taker = race(store, name, tick=tick, takeover=True, attempts=3, owner="taker")
        late = replace(hold_of(zombie), until=hold_of(zombie).until - TTL - 1)
        assert not store.settle([Ending(hold=late, outcome=Outcome.OK)])[0].ok
        kept = store.read([name])[0]
        assert kept.ok
        assert kept.entry.token == taker.entry.token
        assert kept.entry.finished < tick
        assert [(run.owner, run.outcome) for run in store.history(name)] == [("zombie", Outcome.LOST)]

    def test_a_plain_lock_does_not_move_the_marks(self, store: LeaseStore, name: str) -> None:
        """Locking a job's name by hand excludes its ticks but decides none."""
        tick = store.now() - 1000
        lock = race(store, name)
        assert race(store, name, tick=tick).why is Why.HELD
        store.release(name, lock.entry.token)
        assert race(store, name, tick=tick).ok

    def test_a_plain_lock_after_a_crashed_tick_leaves_its_marks_and_its_line(
        self, subject: Subject, name: str
    ) -> None:
        """Whoever takes the name next writes the crash down, and learns the marks, also for a lock."""
        store = subject.store
        tick = store.now() - 5000
        crashed = race(store, name, tick=tick, owner="a")
        subject.age(name, TTL + 1)
        lock = race(store, name, known=Known(fence=crashed.entry.fence, ttl=TTL))
        assert lock.ok
        assert (lock.entry.tick, lock.entry.decided, lock.entry.attempt) == (0, tick, 1)
        assert [(run.tick, run.outcome) for run in store.history(name)] == [(tick, Outcome.CRASHED)]
        store.release(name, lock.entry.token)
        again = race(store, name, known=Known(fence=lock.entry.fence, ttl=TTL))
        assert (again.entry.decided, again.entry.attempt) == (tick, 1)

    # Steering

    def test_a_paused_name_is_not_won(self, store: LeaseStore, name: str) -> None:
        """A pause says by whom and why; its ticks are recorded as skipped and stay so after the pause."""
        store.steer(name, "ops", "the API is down")
        tick = store.now() - 1000
        lost = race(store, name, tick=tick, scheduled=True)
        assert lost.why is Why.PAUSED
        assert (lost.entry.paused_by, lost.entry.paused_why) == ("ops", "the API is down")
        assert race(store, name).why is Why.PAUSED
        store.steer(name, "ops", None)
        assert race(store, name, tick=tick).why is Why.DONE
        assert [run.outcome for run in store.history(name)] == [Outcome.SKIPPED]
        assert race(store, name, tick=tick + 500).ok

    def test_whoever_does_not_know_of_a_pause_is_told(self, store: LeaseStore, name: str) -> None:
        """A pause binds those who used the name before it, and those who never heard of it."""
        won = race(store, name)
        store.release(name, won.entry.token)
        store.steer(name, "ops", "maintenance")
        assert race(store, name).why is Why.PAUSED
        assert race(store, name, known=Known(fence=won.entry.fence, ttl=TTL)).why is Why.PAUSED
        store.steer(name, "ops", None)
        assert race(store, name, known=Known(fence=won.entry.fence, ttl=TTL)).entry.steered > 0

    def test_a_win_that_is_found_again_tells_of_a_pause(self, store: LeaseStore, name: str) -> None:
        """Its server must know, should the store forget the name."""
        bid = a_bid(name)
        store.race([bid])
        store.steer(name, "ops", "down")
        known = Known(steered=store.read([name])[0].entry.steered - 1)
        for again in (bid, replace(bid, known=known)):
            entry = store.race([again])[0].entry
            assert (entry.paused, entry.paused_by, entry.paused_why) == (True, "ops", "down")

    def test_a_holder_may_finish_during_a_pause(self, store: LeaseStore, name: str) -> None:
        """A pause stops new winners, not the run under way."""
        won = race(store, name)
        store.steer(name, "ops", "maintenance")
        assert store.renew([hold_of(won)])[0].ok
        assert store.release(name, won.entry.token)

    def test_an_evicted_holder_stays_out(self, store: LeaseStore, name: str) -> None:
        """An operator's release frees the name and raises the fence; renewal and release are refused."""
        won = race(store, name)
        gone = store.evict(name, "ops", "stuck")
        assert gone.ok
        assert gone.entry.fence > won.entry.fence
        assert not store.renew([hold_of(won)])[0].ok
        assert not store.release(name, won.entry.token)
        assert race(store, name).entry.fence > gone.entry.fence

    def test_an_evicted_tick_is_recorded_as_lost(self, store: LeaseStore, name: str) -> None:
        """The history says who released it and why."""
        won = race(store, name, tick=store.now() - 1000)
        store.evict(name, "ops", "stuck")
        assert not store.settle([Ending(hold=hold_of(won), outcome=Outcome.OK)])[0].ok
        (run,) = store.history(name)
        assert run.outcome is Outcome.LOST
        assert run.error == "released by ops: stuck"

    # A store that forgets

    def test_a_running_holder_asserts_its_lease_again(self, subject: Subject, name: str) -> None:
        """After the store lost its data, the holder's renewal puts the lease back, with the same fence."""
        won = race(subject.store, name, tick=subject.store.now() - 1000)
        subject.forget(name)
        renewed = subject.store.renew([hold_of(won)])[0]
        assert renewed.ok
        assert renewed.entry.fence == won.entry.fence
        assert renewed.entry.decided == won.entry.tick
        assert race(subject.store, name).why is Why.HELD

    def test_a_released_lease_is_not_asserted_again(self, store: LeaseStore, name: str) -> None:
        """A name freed on purpose stays free, whatever a late renewal says."""
        won = race(store, name)
        store.release(name, won.entry.token)
        assert not store.renew([hold_of(won)])[0].ok
        assert not store.read([name])[0].ok

    def test_a_lease_past_its_deadline_is_not_asserted_again(self, subject: Subject, name: str) -> None:
        """A holder that slept past its TTL cannot come back through a store that forgot."""
        won = race(subject.store, name)
        subject.forget(name)
        late = replace(hold_of(won), until=subject.store.now() - 1)
        assert not subject.store.renew([late])[0].ok

    def test_who_remembers_a_forgotten_holder_waits_for_it(self, subject: Subject, name: str) -> None:
        """Who knows of a lease the store forgot does not win before its holder could have renewed."""
        store = subject.store
        won = race(store, name)
        subject.forget(name)
        known = Known(fence=won.entry.fence, ttl=TTL)
        waiting = race(store, name, known=known)
        assert waiting.why is Why.HELD
        assert store.renew([hold_of(won)])[0].ok
        assert race(store, name, known=known).entry.token == won.entry.token

    def test_those_who_remember_nothing_wait_as_well(self, subject: Subject, name: str) -> None:
        """Once somebody told of a forgotten holder, nobody wins before its holder could have renewed."""
        store = subject.store
        won = race(store, name)
        subject.forget(name)
        assert not race(store, name, known=Known(fence=won.entry.fence, ttl=TTL)).ok
        assert race(store, name).why is Why.HELD
        assert race(store, name, known=Known(fence=won.entry.fence, ttl=TTL)).why is Why.HELD
        subject.age(name, TTL // 2)
        assert race(store, name).entry.fence > won.entry.fence

    def test_a_tick_waits_for_a_forgotten_holder_too(self, subject: Subject, name: str) -> None:
        """Also for servers that remember nothing, and however new the tick is."""
        store, tick = subject.store, subject.store.now() - 1000
        won = race(store, name, tick=tick)
        subject.forget(name)
        assert race(store, name, tick=tick + 1, known=Known(fence=won.entry.fence, ttl=TTL)).why is Why.HELD
        assert race(store, name, tick=tick + 2).why is Why.HELD

    def test_after_waiting_the_forgotten_name_is_won_with_a_greater_fence(
        self, subject: Subject, name: str
    ) -> None:
        """Fences do not go back when a store loses its data, as long as somebody remembers."""
        store = subject.store
        known = Known(fence=store.now() + DAY, ttl=TTL)
        assert not race(store, name, known=known).ok
        subject.age(name, TTL // 2)
        won = race(store, name, known=known)
        assert won.ok
        assert won.entry.fence > known.fence

    def test_a_name_that_is_known_with_an_older_fence_was_forgotten(
        self, store: LeaseStore, name: str
    ) -> None:
        """A restored backup lacks the lease that a server remembers: its holder is waited for."""
        restored = race(store, name)
        store.release(name, restored.entry.token)
        assert race(store, name, known=Known(fence=restored.entry.fence + DAY, ttl=TTL)).why is Why.HELD

    def test_remembered_marks_are_put_back(self, subject: Subject, name: str) -> None:
        """A tick that a server knows to be decided is not started because the store forgot it."""
        tick = subject.store.now() - 5000
        known = Known(decided=tick, finished=tick, since=tick)
        assert race(subject.store, name, tick=tick, known=known).why is Why.DONE
        won = race(subject.store, name, tick=tick + 1000)
        assert won.ok
        assert won.entry.since == tick

    def test_a_remembered_pause_is_put_back(self, subject: Subject, name: str) -> None:
        """The later word counts: a pause the store forgot is restored, one that was lifted is not."""
        store = subject.store
        paused = store.steer(name, "ops", "down").entry
        known = Known(steered=paused.steered, paused=True, paused_by="ops", paused_why="down")
        subject.forget(name)
        assert race(store, name, known=known).why is Why.PAUSED
        store.steer(name, "ops", None)
        assert race(store, name, known=known).ok

    # Looking

    def test_a_manual_run_moves_no_marks(self, store: LeaseStore, name: str) -> None:
        """It is won for the instant of the request and recorded as manual; the schedule goes on as before."""
        now = store.now()
        store.settle([ending(race(store, name, tick=now - 2000))])
        manual = race(store, name, tick=now - 500, manual=True)
        assert manual.ok
        assert manual.entry.decided == now - 2000
        assert store.settle([ending(manual)])[0].ok
        kept = store.read([name])[0].entry
        assert (kept.decided, kept.finished, kept.since) == (now - 2000, now - 2000, now - 2000)
        newest = store.history(name)[0]
        assert (newest.tick, newest.manual, newest.outcome) == (now - 500, True, Outcome.OK)
        assert race(store, name, tick=now - 1000).ok

    def test_a_manual_run_can_be_asked_for_before_the_first_tick_and_for_an_old_instant(
        self, store: LeaseStore, name: str
    ) -> None:
        """Marks do not refuse it."""
        now = store.now()
        store.settle([ending(race(store, name, tick=now - 500))])
        assert race(store, name, tick=now - 1000, manual=True).ok

    def test_a_tick_due_during_a_manual_run_is_not_skipped(self, store: LeaseStore, name: str) -> None:
        """It is held back, and can be won once the manual run is over."""
        now = store.now()
        manual = race(store, name, tick=now - 2000, manual=True)
        held = race(store, name, tick=now - 1000)
        assert held.why is Why.HELD
        store.settle([ending(manual)])
        assert race(store, name, tick=now - 1000).ok

    def test_a_manual_run_leaves_a_failed_tick_its_attempts(self, store: LeaseStore, name: str) -> None:
        """What may be started again stays so, with the attempts it had."""
        now = store.now()
        store.settle([ending(race(store, name, tick=now - 2000), Outcome.FAILED, attempts=2)])
        store.settle([ending(race(store, name, tick=now - 500, manual=True))])
        again = race(store, name, tick=now - 2000, attempts=2)
        assert again.ok
        assert again.entry.attempt == 2

    def test_a_manual_run_for_the_instant_of_a_tick_moves_no_marks(
        self, store: LeaseStore, name: str
    ) -> None:
        """The tick was given back, and stays to be started."""
        tick = store.now() - 5000
        store.release(name, race(store, name, tick=tick).entry.token)
        won = race(store, name, tick=tick, manual=True)
        assert store.settle([ending(won)])[0].ok
        kept = store.read([name])[0].entry
        assert (kept.since, kept.finished, kept.open) == (0, 0, True)

    def test_a_crashed_manual_run_is_told_by_whoever_comes_next(self, subject: Subject, name: str) -> None:
        """The history says crashed, and manual."""
        store = subject.store
        now = store.now()
        race(store, name, tick=now - 500, manual=True)
        subject.age(name, TTL + 1)
        assert race(store, name, tick=now - 400).ok
        crashed = store.history(name)[-1]
        assert (crashed.outcome, crashed.manual) == (Outcome.CRASHED, True)

    # Notes

    def test_notes_are_read_by_all_until_their_life_is_over(self, store: LeaseStore, name: str) -> None:
        """A later note with the same key takes the place of the former; boards are apart."""
        store.post(name, "b", "first", 60_000)
        store.post(name, "b", "second\nline é", 60_000)
        store.post(name, "a", "", 60_000)
        store.post(f"{name}-other", "c", "elsewhere", 60_000)
        said = store.post(name, "gone", "soon", 1)
        while store.now() <= said + 1:
            pass
        notes = store.notes(name)
        assert [(note.key, note.text) for note in notes] == [("a", ""), ("b", "second\nline é")]
        assert abs(said - store.now()) < 5000
        assert abs(notes[1].until - said - 60_000) < 1000

    def test_a_note_may_be_long(self, store: LeaseStore, name: str) -> None:
        """The jobs of a large fleet are one note."""
        text = "é" * 400_000
        store.post(name, "jobs", text, 60_000)
        assert [note.text for note in store.notes(name)] == [text]

    def test_one_caller_strikes_a_note(self, store: LeaseStore, name: str) -> None:
        """So a request on a board is taken by one server; what is over cannot be taken."""
        store.post(name, "request", "now", 60_000)
        assert store.strike(name, "request")
        assert not store.strike(name, "request")
        assert store.notes(name) == []
        posted = store.post(name, "short", "now", 1)
        while store.now() <= posted + 1:
            pass
        assert not store.strike(name, "short")

    # Loans of a rate

    def test_a_window_lends_its_limit_and_no_more(self, store: LeaseStore, name: str) -> None:
        """Whoever asks gets what is left; numbers are given out once, and one rate is not another."""
        limit = 10_000
        loans = [store.lend(name, DAY, limit, 3), store.lend(name, DAY, limit, 4)]
        assert [loan.size for loan in loans] == [3, 4]
        assert loans[1].first >= loans[0].first + 3
        assert all(loan.until % DAY == 0 and 0 < loan.until - loan.now <= DAY for loan in loans)
        assert abs(loans[0].now - store.now()) < 5000
        rest = store.lend(name, DAY, limit, limit)
        assert rest.first + rest.size == limit
        assert store.lend(name, DAY, limit, 1).size == 0
        assert store.lend(f"{name}-other", DAY, limit, 5).size == 5

    def test_a_window_lends_no_more_to_many_who_ask_at_once(self, store: LeaseStore, name: str) -> None:
        """Each call of the limit is lent to one of them."""
        loans: list[Loan] = []
        threads = [
            threading.Thread(target=lambda: loans.append(store.lend(name, DAY, 10_000, 30))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [n for loan in loans for n in range(loan.first, loan.first + loan.size)]
        assert len(loans) == 8
        assert len(set(numbers)) == len(numbers)

    def test_what_a_window_did_not_lend_does_not_add_to_the_next(self, store: LeaseStore, name: str) -> None:
        """Nor does what was lent and not used: each window has its limit anew."""
        _begin(store, 1000)
        first = store.lend(name, 1000, 10, 4)
        while store.now() < first.until:
            time.sleep(0.01)
        _begin(store, 1000)
        second = store.lend(name, 1000, 10, 100)
        assert second.first <= 1  # of the new window, whose first tenth it is
        assert (first.size, second.size) == (4, 10 - second.first)
        assert second.until - first.until >= 1000
        assert store.lend(name, 1000, 10, 100).size == 0

    def test_calls_whose_time_in_the_window_has_passed_are_lent_no_more(
        self, store: LeaseStore, name: str
    ) -> None:
        """Else a server that comes late in a window would call in a burst."""
        _begin(store, 2000)
        while store.now() % 2000 < 1200:
            time.sleep(0.01)
        loan = store.lend(name, 2000, 100, 100)
        assert loan.first >= 57
        assert loan.size == 100 - loan.first

    def test_names_are_listed_by_prefix(self, store: LeaseStore, name: str) -> None:
        """A prefix is taken literally: wildcards of the engine mean nothing."""
        for suffix in ("-a", "-b", "%", "_x", "*"):
            race(store, name + suffix)
        assert store.names(f"{name}-") == [f"{name}-a", f"{name}-b"]
        assert store.names(f"{name}%") == [f"{name}%"]
        assert store.names(f"{name}_") == [f"{name}_x"]
        assert store.names(f"{name}*") == [f"{name}*"]
        assert store.names(name.upper()) == []

    def test_names_that_look_alike_are_different(self, store: LeaseStore, name: str) -> None:
        """Case, accents, quotes and scripts are told apart, and harmless."""
        strange = ["X", "x", "é", "e", "'", '"', "x'; --", "%s", "\\", "名", "ü", "u", ":", "a b", "*", "😀"]
        answers = store.race([a_bid(f"{name}{part}") for part in strange])
        assert all(answer.ok for answer in answers)
        assert all(answer.ok for answer in store.read([f"{name}{part}" for part in strange]))

    def test_reading_an_unknown_name_tells_nothing(self, store: LeaseStore, name: str) -> None:
        """Reading leaves no trace."""
        (answer,) = store.read([name])
        assert not answer.ok
        assert answer.entry.fence == 0
        assert store.names(name) == []

    def test_history_is_newest_first_and_bounded_by_limit(self, store: LeaseStore, name: str) -> None:
        """The latest runs come first."""
        tick = store.now() - 10_000
        for i in range(5):
            won = race(store, name, tick=tick + i)
            store.settle([Ending(hold=hold_of(won), outcome=Outcome.OK)])
        assert [run.tick for run in store.history(name, 3)] == [tick + 4, tick + 3, tick + 2]

    def test_runs_of_many_names_are_told_in_one_trip(self, store: LeaseStore, name: str) -> None:
        """From the given tick on, and of no other name."""
        tick = store.now() - 10_000
        for suffix in ("-a", "-b", "-c"):
            for i in range(3):
                won = race(store, name + suffix, tick=tick + i)
                store.settle([Ending(hold=hold_of(won), outcome=Outcome.OK)])
        found = store.runs([f"{name}-a", f"{name}-b", f"{name}-none"], tick + 1)
        told = sorted((run.name, run.tick) for run in found)
        assert told == [(name + s, tick + i) for s in ("-a", "-b") for i in (1, 2)]
        assert store.runs([], 0) == []

    def test_another_lane_sees_the_same(self, store: LeaseStore, name: str) -> None:
        """`within` gives other connections to the same data."""
        won = race(store, name)
        lane = store.within(1.0)
        assert lane.read([name])[0].entry.token == won.entry.token
        lane.close()


def a_bid(name: str, owner: str = "somebody") -> Bid:
    """A bid for a plain lock."""
    return Bid(name=name, token=new_token(), owner=owner, ttl=TTL)


def race(
    store: LeaseStore,
    name: str,
    *,
    owner: str = "somebody",
    tick: int = 0,
    attempts: int = 1,
    takeover: bool = False,
    scheduled: bool | None = None,
    manual: bool = False,
    known: Known | None = None,
) -> Answer:
    """Race for a name with a new token; for a tick, as a scheduler does."""
    bid = replace(
        a_bid(name, owner),
        tick=tick,
        attempts=attempts,
        takeover=takeover,
        scheduled=bool(tick) if scheduled is None else scheduled,
        manual=manual,
        known=known or Known(),
    )
    return store.race([bid])[0]


def _begin(store: LeaseStore, window: int) -> None:
    """Wait until a window has just begun."""
    while store.now() % window > window // 10:
        time.sleep(0.01)


def hold_of(answer: Answer) -> Hold:
    """What a winner sends when it renews or settles."""
    return held(answer.entry)


def ending(answer: Answer, outcome: Outcome = Outcome.OK, attempts: int = 1) -> Ending:
    """How a winner settles."""
    return Ending(hold=hold_of(answer), outcome=outcome, attempts=attempts)
