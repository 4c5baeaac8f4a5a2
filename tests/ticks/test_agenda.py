"""The agenda: which tick is next, when to race for it, what a refusal means. Pure: time is an argument."""

from __future__ import annotations

import pytest

from tickoff.model import Answer, Entry, Why
from tickoff.schedules.schedule import every
from tickoff.ticks.agenda import Agenda, Place, first_tick, wait_after

from ..virtual import NOON, job

MINUTE = 60_000
TICK = NOON + MINUTE


def agenda(*jobs: object, now: int = NOON) -> Agenda:
    """The agenda of jobs that the store has never seen."""
    made = Agenda(jobs)  # type: ignore[arg-type]
    made.begin({}, now)
    return made


def entry(**values: object) -> Entry:
    """What the store keeps of the job."""
    return Entry(name="job", **values)  # type: ignore[arg-type]


def refusal(why: Why, now: int = TICK, **values: object) -> Answer:
    """A race that was not won."""
    return Answer(False, entry(**values), now, why)


def place(**options: object) -> Place:
    """Where a job stands whose tick is due."""
    return Place(job(**options), TICK, TICK + MINUTE, TICK)  # type: ignore[arg-type]


def ready(made: Agenda, now: float) -> list[Place]:
    """The places whose time has come."""
    return made.first(made.look(now))


@pytest.mark.parametrize(
    ("kept", "options", "last"),
    [
        ({}, {}, False),
        ({"fence": 5}, {}, False),  # a plain lock of that name
        ({"scheduled": True, "decided": TICK - MINUTE}, {}, True),
        ({"scheduled": True}, {}, True),
        ({"scheduled": True, "decided": TICK, "finished": TICK}, {}, False),
        ({"scheduled": True, "decided": TICK}, {}, False),  # it runs, or crashed: nobody touches it
        ({"scheduled": True, "decided": TICK}, {"takeover": True, "attempts": 3}, True),
        ({"scheduled": True, "decided": TICK}, {"attempts": 2}, True),
        ({"scheduled": True, "decided": TICK, "finished": TICK}, {"attempts": 2}, False),
        ({"scheduled": True, "decided": TICK, "open": True}, {}, True),  # given back unstarted
        ({"scheduled": True, "decided": TICK - MINUTE, "steered": TICK + 1}, {"catch_up": True}, False),
        ({"scheduled": True, "decided": TICK - MINUTE, "steered": TICK - 1}, {}, True),
    ],
)
def test_a_server_that_starts_looks_to_the_last_tick_or_to_the_next(
    kept: dict[str, object], options: dict[str, object], last: bool
) -> None:
    """By what the store knows of it."""
    found = first_tick(job(**options), entry(**kept), TICK + 30_000)
    assert found == (TICK if last else TICK + MINUTE)


@pytest.mark.parametrize(("late", "catch_up", "last"), [(60, False, 1), (61, False, 0), (3599, True, 1)])
def test_the_last_tick_is_taken_within_a_minute_or_on_request(late: int, catch_up: bool, last: int) -> None:
    """To the second."""
    one = job(schedule=every("1h"), catch_up=catch_up)
    kept = entry(scheduled=True, decided=NOON - 3_600_000)
    assert first_tick(one, kept, NOON + late * 1000) == (NOON if last else NOON + 3_600_000)


def test_a_place_is_ready_when_its_time_has_come_and_until_it_is_moved() -> None:
    """Asking does not use it up."""
    made = agenda(job())
    assert ready(made, TICK - 1) == []
    assert made.wake == TICK
    (due,) = ready(made, TICK)
    assert ready(made, TICK) == [due]
    made.move_on(due)
    assert ready(made, TICK) == []
    assert made.wake == TICK + MINUTE
    assert made.next_tick("job") == TICK + MINUTE


def test_only_the_latest_of_many_missed_ticks_is_ready() -> None:
    """At once, not at the next look."""
    made = agenda(job())
    assert [due.tick for due in ready(made, TICK + 10 * MINUTE + 5)] == [TICK + 10 * MINUTE]


def test_a_tick_that_waits_gives_way_to_the_next_when_that_is_due() -> None:
    """While it is ready, and while it waits to be raced for again."""
    made = agenda(job())
    (due,) = ready(made, TICK)
    assert [later.tick for later in ready(made, TICK + MINUTE)] == [TICK + MINUTE]
    made = agenda(job())
    (due,) = ready(made, TICK)
    made.again(due, TICK + 10 * MINUTE)
    assert made.wake == TICK + MINUTE
    made = agenda(job())
    (due,) = ready(made, TICK)
    made.again(due, TICK + 1000)
    assert made.wake == TICK + 1000
    assert [later.tick for later in ready(made, TICK + 1000)] == [TICK]


def test_a_failed_tick_is_started_again_after_growing_pauses() -> None:
    """Unless the next one is due by then."""
    for attempt, pause in ((1, 1), (2, 2), (3, 4), (4, 8)):
        made, one = agenda(job()), job()
        made.move_on(ready(made, TICK)[0])
        made.failed(one, TICK, attempt, TICK + 5000)
        assert made.wake == TICK + 5000 + pause * 1000
    made = agenda(job())
    made.move_on(ready(made, TICK)[0])
    made.failed(job(), TICK, 7, TICK + 5000)
    assert made.wake == TICK + MINUTE
    assert made.next_tick("job") == TICK + MINUTE


@pytest.mark.parametrize(
    ("options", "answer", "wait"),
    [
        ({}, refusal(Why.DONE), None),
        ({}, refusal(Why.PAUSED), None),
        ({}, refusal(Why.TOO_EARLY, now=TICK - 250), 250),
        ({}, refusal(Why.TOO_EARLY, now=TICK), 1),
        # a plain lock, a manual run, a foreign program: the tick is only delayed
        ({}, refusal(Why.HELD, token="t", until=TICK + 300), 350),
        ({}, refusal(Why.HELD, token="t", until=TICK + 9000), 1000),
        ({}, refusal(Why.HELD, token="t", until=TICK + 300, tick=5, manual=True), 350),
        ({}, refusal(Why.HELD, barrier=TICK + 400), 450),
        # another tick, or this one in other hands
        ({}, refusal(Why.HELD, token="t", until=TICK + 9000, tick=TICK - MINUTE), None),
        ({}, refusal(Why.HELD, token="t", until=TICK + 9000, tick=TICK), None),
        ({"attempts": 2}, refusal(Why.HELD, token="t", until=TICK + 9000, tick=TICK), 9050),
        ({"takeover": True}, refusal(Why.HELD, token="t", until=TICK + 9000, tick=TICK), 9050),
        ({"takeover": True}, refusal(Why.HELD, token="t", until=TICK + 9000, tick=TICK - MINUTE), None),
    ],
)
def test_what_a_refusal_means(options: dict[str, object], answer: Answer, wait: float | None) -> None:
    """How long to wait before the next race, or that there is no use."""
    assert wait_after(place(**options), answer) == wait


def test_a_place_that_is_too_early_is_not_early_again() -> None:
    """Reckoned from the answer: by our own estimate, which was wrong, the tick has come."""
    made = agenda(job())
    (due,) = ready(made, TICK)
    made.refused(due, refusal(Why.TOO_EARLY, now=TICK - 40), TICK + 1)
    assert made.wake == TICK + 41


def test_jitter_delays_the_race_and_not_the_tick() -> None:
    """By what the job says."""
    one = job(jitter=30_000)
    made = agenda(one)
    delay = one.delay(TICK)
    assert delay > 0
    assert ready(made, TICK + delay - 1) == []
    assert [due.tick for due in ready(made, TICK + delay)] == [TICK]


def test_a_schedule_that_ends_leaves_the_agenda() -> None:
    """Nothing is due any more."""

    class Ends:
        text = "once"

        def after(self, instant: int) -> int | None:
            return TICK if instant < TICK else None

        def upto(self, instant: int) -> int | None:
            return TICK if instant >= TICK else None

    made = agenda(job(schedule=Ends()))
    (due,) = ready(made, TICK)
    assert ready(made, TICK + 10 * MINUTE) == [due]
    made.move_on(due)
    assert made.wake is None
    assert made.next_tick("job") is None


def test_what_comes_at_once_stands_in_another_order_on_each_server() -> None:
    """And keeps it, so that a trip need not look at all of it."""
    jobs = [job(f"job-{i}") for i in range(50)]
    orders = []
    for _ in range(2):
        made = Agenda(jobs)
        made.begin({}, TICK - 1)
        assert made.look(TICK) == 50
        orders.append([place.job.name for place in made.first(50)])
        assert [place.job.name for place in made.first(5)] == orders[-1][:5]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
