"""Bugs of the scheduler to be planted on purpose, each with the tests that must notice; see `planted.py`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tickoff import rules, serve
from tickoff.leases import settler
from tickoff.leases.storetime import StoreTime
from tickoff.model import Answer, Bid, Ending, Entry, Outcome, Why
from tickoff.ticks import agenda, leader
from tickoff.ticks import scheduler as ticks
from tickoff.ticks.agenda import Agenda, Place
from tickoff.ticks.job import Job
from tickoff.ticks.runs import Runs
from tickoff.work import ENDED_WELL


def attempts_without_end() -> None:
    """A tick is started again however often it was."""
    right = rules._again
    rules._again = lambda entry, bid: right(replace(entry, attempt=0), bid)


def agenda_forgets_the_next() -> None:
    """A tick that was won is the last one of its job."""

    def wrong(self: Agenda, place: Place) -> None:
        self._enter(place.job, None)

    Agenda.move_on = wrong  # type: ignore[method-assign]


def takeover_at_once() -> None:
    """A stand-by takes the tick from a server that is at work on it."""
    right = rules._refusal

    def wrong(entry: Entry, bid: Bid, now: int) -> Any:
        return right(replace(entry, until=0) if bid.takeover else entry, bid, now)

    rules._refusal = wrong


def nobody_stands_by() -> None:
    """Who loses looks to the next tick, whatever becomes of this one."""
    right = agenda.wait_after

    def wrong(place: Place, answer: Answer) -> float | None:
        return None if answer.why is Why.HELD else right(place, answer)

    agenda.wait_after = wrong


def settled_by_anybody() -> None:
    """A tick is settled whoever holds it by now."""
    right = rules.settle

    def wrong(entry: Entry, ending: Ending, now: int) -> rules.Step:
        return right(entry, replace(ending, hold=replace(ending.hold, token=entry.token)), now)

    rules.settle = wrong


def unsettled_after_an_outage() -> None:
    """What could not be told to the store at once is never told."""
    right = settler.Settler._drop

    def wrong(self: settler.Settler, late: Any, error: Any) -> None:
        right(self, list(self._pending), error)

    settler.Settler._drop = wrong  # type: ignore[method-assign]


def more_than_the_slots() -> None:
    """A server takes all it can get."""
    Runs.free = property(lambda self: self._slots)  # type: ignore[assignment, method-assign]


def retries_at_once_and_late() -> None:
    """The pause before a retry grows beyond the next tick, and displaces it."""

    def wrong(self: Agenda, job: Job, tick: int, attempt: int, now: float) -> None:
        self._put(Place(job, tick, job.schedule.after(tick), now + 1000 * 2.0 ** (attempt - 1)))

    Agenda.failed = wrong  # type: ignore[method-assign]


def pauses_are_caught_up() -> None:
    """A server that starts does not mind that its tick fell into a pause."""
    right = agenda._still_to_run
    agenda._still_to_run = lambda job, entry, last, now: right(job, replace(entry, steered=0), last, now)


def jitter_of_its_own() -> None:
    """Every server draws another delay."""
    Job.delay = lambda self, _tick: random.randint(0, self.jitter)  # type: ignore[method-assign]


def ticks_by_our_own_clock() -> None:
    """The store's time is what this machine thinks it is."""
    StoreTime.learn = lambda *_: None  # type: ignore[method-assign]


def starts_after_the_stop() -> None:
    """What was won while the server stops is started all the same."""

    def wrong(self: ticks.Ticks, place: Place, lease: Any) -> None:
        self._runs.start(place.job, lease, place.tick)

    ticks.Ticks._won = wrong  # type: ignore[method-assign]


def no_grace() -> None:
    """What runs is cut off at once."""
    right = serve.wind_down

    def wrong(services: Any, grace: float, hurry: Any) -> None:
        right(services, grace, lambda: True)

    serve.wind_down = wrong
    import tickoff.app.serving

    tickoff.app.serving.wind_down = wrong


def a_lost_lease_is_well() -> None:
    """What was done under a lost lease counts as done."""
    from tickoff.ticks.runs import Course

    right = Course.end

    def wrong(self: Course, error: BaseException | None) -> Any:
        end = right(self, error)
        return ENDED_WELL if end.outcome is Outcome.LOST else end

    Course.end = wrong  # type: ignore[method-assign]


def leads_on() -> None:
    """Async work of a leader is not told that the lead is lost."""

    class Deaf(leader.Interrupt):  # type: ignore[misc]
        """Cancels nothing."""

        def cancel(self) -> None:
            """Do nothing."""

    leader.Interrupt = Deaf  # type: ignore[misc]


_TICKS = "tests/ticks/test_ticks.py"

TICK_BUGS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "attempts_without_end": (attempts_without_end, (_TICKS, "-k", "kills_every")),
    "agenda_forgets_the_next": (agenda_forgets_the_next, (_TICKS, "-k", "runs_once_on_ten")),
    "takeover_at_once": (takeover_at_once, (_TICKS, "-k", "stand_by_takes")),
    "nobody_stands_by": (nobody_stands_by, (_TICKS, "-k", "stand_by_takes")),
    "settled_by_anybody": (settled_by_anybody, ("tests/leases/test_settler.py",)),
    "unsettled_after_an_outage": (unsettled_after_an_outage, ("tests/leases/test_settler.py",)),
    "more_than_the_slots": (more_than_the_slots, (_TICKS, "-k", "slots_for")),
    "retries_at_once_and_late": (retries_at_once_and_late, (_TICKS, "-k", "retries_do_not")),
    "pauses_are_caught_up": (pauses_are_caught_up, (_TICKS, "-k", "into_a_pause")),
    "jitter_of_its_own": (jitter_of_its_own, ("tests/ticks/test_scheduled.py", "-k", "jitter_is_the_same")),
    "ticks_by_our_own_clock": (ticks_by_our_own_clock, ("tests/leases/test_storetime.py",)),
    "starts_after_the_stop": (starts_after_the_stop, (_TICKS, "-k", "given_back")),
    "no_grace": (no_grace, ("tests/ticks/test_serving.py", "-k", "within_the_grace")),
    "a_lost_lease_is_well": (a_lost_lease_is_well, ("tests/ticks/test_runs.py", "-k", "lost")),
    "leads_on": (leads_on, ("tests/ticks/test_leader.py", "-k", "stopped_before")),
}
"""How to plant each, and what to give pytest: that run must fail."""
