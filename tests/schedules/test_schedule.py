"""Schedules are values: text → ticks, the same on every server."""

from __future__ import annotations

import pickle
import time
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickoff.errors import ConfigError
from tickoff.model import moment
from tickoff.schedules.schedule import (
    LAST_INSTANT,
    Cron,
    Schedule,
    _digest,
    _next,
    cron,
    every,
    schedule_of,
    ticks,
)

DAY = 86_400_000


def ms(*parts: int, zone: str = "UTC") -> int:
    year, month, day, *clock = parts
    return int(datetime(year, month, day, *clock, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def local_ticks(schedule: Schedule, start: int, count: int) -> list[str]:
    zone = ZoneInfo(schedule.tz if isinstance(schedule, Cron) else "UTC")
    return [f"{moment(tick).astimezone(zone):%d %H:%M%z}" for tick in islice(ticks(schedule, start), count)]


def test_the_first_tick_lies_strictly_after_the_instant() -> None:
    """A loop that asks with its last tick always moves on."""
    hourly, noon = cron("@hourly"), ms(2026, 3, 1, 12)
    assert hourly.after(noon) == noon + 3_600_000
    assert hourly.after(noon - 1) == noon


def test_the_latest_tick_may_be_the_instant_itself() -> None:
    """What a scheduler that fires on the dot is for."""
    hourly, noon = cron("@hourly"), ms(2026, 3, 1, 12)
    assert hourly.upto(noon) == noon
    assert hourly.upto(noon - 1) == noon - 3_600_000
    assert hourly.upto(noon + 999) == noon


def test_a_period_counts_from_the_epoch() -> None:
    """So that servers started at different times agree."""
    schedule = every("90s")
    assert schedule.after(ms(2026, 3, 1) + 1) == ms(2026, 3, 1) + 90_000
    assert schedule.upto(ms(2026, 3, 1) + 89_999) == ms(2026, 3, 1)


@pytest.mark.parametrize("length", ["250ms", "1s", 1, 0.29, "7d", timedelta(minutes=5), "31d", "100ms"])
def test_periods_from_a_tenth_of_a_second_to_a_month_are_taken(length: Any) -> None:
    """Whatever way they are written."""
    schedule = every(length)
    first, second = islice(ticks(schedule, 0), 2)
    assert (first, second) == (second - first, 2 * first)


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (0, "too short"),
        (-5, "too short"),
        ("50ms", "too short"),
        (timedelta(-1), "too short"),
        ("32d", "longer than 31 days; use cron"),
        ("9" * 400, "longer than 31 days"),
        (10**400, "too large"),
        pytest.param(-(10**5000), "too large", id="beyond what str takes"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        ("0.1005s", "no whole number of milliseconds"),
        (timedelta(seconds=1, microseconds=1), "no whole number"),
        ("-5s", "not a duration"),
        ("5 m", "not a duration"),
        ("\x00", "not a duration"),
        ("٣s", "not a duration"),
        (True, "not a duration"),
        (None, "not a duration"),
        (b"5s", "not a duration"),
        ([], "not a duration"),
    ],
)
def test_a_period_that_cannot_work_is_refused(length: Any, said: str) -> None:
    """Naming the field and what to do."""
    with pytest.raises(ConfigError, match="every") as refused:
        every(length)
    assert refused.match(said)


@pytest.mark.parametrize(
    ("length", "text"),
    [("90s", "every 1m30s"), (90, "every 1m30s"), ("24h", "every 1d"), (0.25, "every 250ms")],
)
def test_a_period_has_one_spelling(length: Any, text: str) -> None:
    """Equal text, equal schedule: and back."""
    assert every(length).text == text
    assert every(text.removeprefix("every ")) == every(length)


@pytest.mark.parametrize("schedule", [cron("30 2 * * *", "Europe/Berlin"), every("30s")])
def test_schedules_are_values(schedule: Any) -> None:
    """They can be compared, hashed, sent to another process, and not be changed."""
    other = pickle.loads(pickle.dumps(schedule))
    assert (other, hash(other), other.after(0)) == (schedule, hash(schedule), schedule.after(0))
    with pytest.raises(FrozenInstanceError):
        setattr(schedule, fields(schedule)[0].name, "other")
    assert schedule != cron("30 2 * * *", "Europe/Paris")


def test_a_walk_is_not_led_astray_by_another() -> None:
    """A line is parsed once and asked by many threads."""
    schedule = cron("*/5 * * * *", "Europe/Berlin")
    assert isinstance(schedule, Cron)
    walk = schedule._walls(moment(ms(2026, 1, 1)).replace(tzinfo=None))
    first = next(walk)
    assert schedule.upto(ms(1990, 1, 1)) == ms(1990, 1, 1)
    assert next(walk) == first + timedelta(minutes=5)


class TestTheCrontabRule:
    """Forward in Berlin: 02:00 → 03:00 on 29 March 2026. Back: 03:00 → 02:00 on 25 October."""

    forward, back = ms(2026, 3, 28, 23), ms(2026, 10, 24, 22)

    def test_a_fixed_time_that_does_not_exist_comes_when_the_clock_is_put_forward(self) -> None:
        """Not lost, and on the next day at its own time again."""
        schedule = cron("30 2 * * *", "Europe/Berlin")
        assert local_ticks(schedule, self.forward, 2) == ["29 03:00+0200", "30 02:30+0200"]

    def test_fixed_times_that_fall_together_are_one_tick(self) -> None:
        """Two that do not exist, and the one at which the clock arrives."""
        schedule = cron("0,30 2,3 * * *", "Europe/Berlin")
        assert local_ticks(schedule, self.forward, 3) == ["29 03:00+0200", "29 03:30+0200", "30 02:00+0200"]

    def test_a_fixed_time_that_comes_twice_is_taken_the_first_time(self) -> None:
        """Not doubled."""
        schedule = cron("30 2 * * *", "Europe/Berlin")
        assert local_ticks(schedule, self.back, 2) == ["25 02:30+0200", "26 02:30+0100"]

    def test_a_line_with_a_star_goes_by_what_clocks_show(self) -> None:
        """Hourly stays hourly across both."""
        schedule = cron("0 * * * *", "Europe/Berlin")
        assert local_ticks(schedule, self.forward, 3) == ["29 01:00+0100", "29 03:00+0200", "29 04:00+0200"]
        assert local_ticks(schedule, self.back + 1, 4) == [
            "25 01:00+0200",
            "25 02:00+0200",
            "25 02:00+0100",
            "25 03:00+0100",
        ]

    def test_a_line_with_a_star_at_a_set_hour_may_be_left_out_or_come_twice(self) -> None:
        """As Debian's cron does."""
        schedule = cron("*/30 2 * * *", "Europe/Berlin")
        assert local_ticks(schedule, self.forward, 1) == ["30 02:00+0200"]
        assert len([at for at in local_ticks(schedule, self.back, 6) if at.startswith("25")]) == 4

    def test_the_latest_tick_during_the_repeated_hour_may_be_later_on_the_clock(self) -> None:
        """At the second 02:10 the tick of the first 02:45 is the last one; the clock shows less than then."""
        schedule = cron("45 2 * * *", "Europe/Berlin")
        second = ms(2026, 10, 25, 1, 10)
        assert schedule.upto(second) == ms(2026, 10, 25, 0, 45)

    @pytest.mark.parametrize(
        ("line", "tick", "note"),
        [
            ("30 2 * * *", (2026, 3, 29, 1), "clock goes forward: there is no 02:30, moved here"),
            ("30 2 * * *", (2026, 10, 25, 0, 30), "clock goes back: 02:30 comes twice, this is the first"),
            ("*/30 2 * * *", (2026, 10, 25, 1, 30), "clock goes back: 02:30 comes twice, this is the second"),
            ("0 3 * * *", (2026, 3, 29, 1), ""),
            ("30 2 * * *", (2026, 3, 30, 0, 30), ""),
            ("0 * * * *", (2026, 3, 29, 1), ""),
        ],
    )
    def test_a_tick_that_the_clock_moved_is_explained(
        self, line: str, tick: tuple[int, ...], note: str
    ) -> None:
        """And no other."""
        schedule = cron(line, "Europe/Berlin")
        assert schedule.upto(ms(*tick)) == ms(*tick)
        assert isinstance(schedule, Cron)
        assert schedule.note(ms(*tick)) == note


def test_the_29th_of_february_is_found_quickly_in_both_directions() -> None:
    """Eight years from 1896-like gaps included: 2100 has none."""
    schedule = cron("0 0 29 2 *")
    started = time.process_time()
    assert schedule.after(ms(2096, 3, 1)) == ms(2104, 2, 29)
    assert schedule.upto(ms(2104, 2, 28)) == ms(2096, 2, 29)
    rare = cron("0 0 * 2 MON#5")
    assert rare.after(ms(2072, 3, 1)) == ms(2112, 2, 29)
    assert rare.upto(ms(2112, 2, 28)) == ms(2072, 2, 29)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("schedule", [cron("* * * * *"), cron("0 5 * * *", "Pacific/Apia"), every("1h")])
def test_ticks_lie_after_the_epoch_and_end_before_dates_do(schedule: Schedule) -> None:
    """0 means "never" in a store, and a far instant is answered, not a traceback."""
    assert schedule.upto(0) is schedule.upto(-5 * DAY) is None
    first = schedule.after(-(10**18))
    assert first is not None
    assert first > 0
    assert schedule.upto(first - 1) is None
    assert schedule.after(LAST_INSTANT) is schedule.after(10**18) is None
    last = schedule.upto(10**18)
    assert last is not None
    assert LAST_INSTANT - DAY < last <= LAST_INSTANT
    assert schedule.after(last) is None


SCHEDULES = [
    cron("30 2 * * *", "Europe/Berlin"),
    cron("*/20 1-3 * * *", "America/New_York"),
    cron("15 * * * *", "Australia/Lord_Howe"),
    cron("0 0 * * *", "America/Havana"),
    cron("0-59 2 * * 0", "Europe/London"),
    cron("0 12 29 2 *", "Africa/Casablanca"),
    cron("*/7 * L * 5L", "Antarctica/Troll"),
    cron("0 9 1-7 * MON", "Asia/Kolkata"),
    every("7m"),
]
INSTANTS = st.integers(ms(1975, 1, 1), ms(2090, 1, 1)) | st.sampled_from(
    [ms(2026, 10, 25, 1), ms(2026, 3, 29, 1), ms(2026, 4, 4, 15), ms(2026, 3, 8, 5), ms(2026, 11, 1, 6)]
).flatmap(lambda turn: st.integers(turn - 10_000_000, turn + 10_000_000))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(SCHEDULES), INSTANTS)
def test_what_follows_and_what_precedes_agree(schedule: Schedule, instant: int) -> None:
    """No tick lies between the latest and the next, whichever of the two is asked for first."""
    later, former = schedule.after(instant), schedule.upto(instant)
    assert later is not None
    assert former is not None
    assert former <= instant < later
    assert schedule.after(former) == later
    assert schedule.upto(later - 1) == former
    assert schedule.upto(later) == later


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SCHEDULES), INSTANTS)
def test_ticks_are_the_same_forward_and_backward(schedule: Schedule, instant: int) -> None:
    """Twenty in a row."""
    there = list(islice(ticks(schedule, instant), 20))
    back, at = [], there[-1]
    while at > instant:
        back.append(at)
        earlier = schedule.upto(at - 1)
        assert earlier is not None
        at = earlier
    assert back[::-1] == there
    assert there == sorted(set(there))


def test_a_digest_is_the_day_s_and_tells_schedules_apart() -> None:
    """Servers that ask at different times of a day compare equal; other ticks do not."""
    berlin = cron("30 2 * * *", "Europe/Berlin")
    day = ms(2026, 6, 1)
    assert berlin.digest(day) == berlin.digest(day + DAY - 1) != berlin.digest(day + DAY)
    assert berlin.digest(day) == cron("30 2 * * *", "Europe/Paris").digest(day)  # the same ticks
    assert berlin.digest(day) != cron("30 2 * * *", "Europe/London").digest(day)
    assert every("1h").digest(day) == cron("@hourly").digest(day) != every("2h").digest(day)


def test_a_digest_differs_where_the_zone_data_do() -> None:
    """That is what it is for: the same text on two servers, one of which has not heard of a new law."""
    berlin = cron("30 2 * * *", "Europe/Berlin")
    assert isinstance(berlin, Cron)
    outdated = Cron(berlin.expression, berlin.tz, berlin._line, ZoneInfo("Europe/Minsk"))
    known = berlin.digest(ms(2026, 1, 9))
    _digest.cache_clear()  # a process has one set of zone data, and remembers
    _next.cache_clear()
    assert outdated.text == berlin.text
    try:
        assert outdated.digest(ms(2026, 1, 9)) != known
    finally:
        _digest.cache_clear()
        _next.cache_clear()


@pytest.mark.parametrize(
    ("given_options", "said"),
    [
        ((None, None, None), "exactly one"),
        ((None, None, "UTC"), "exactly one"),
        (("@hourly", "30s", None), "exactly one"),
        ((None, "30s", "UTC"), "tz='UTC' means nothing to every"),
    ],
)
def test_exactly_one_of_cron_and_every_is_wanted(given_options: tuple[Any, Any, Any], said: str) -> None:
    """And a zone belongs to cron: nothing is taken and ignored."""
    with pytest.raises(ConfigError, match=said):
        schedule_of(*given_options)


def test_options_are_read_as_the_decorators_do() -> None:
    """The zone is UTC unless given."""
    assert schedule_of("@hourly", None, None) == cron("0 * * * *", "UTC")
    assert schedule_of("@hourly", None, "Asia/Tokyo") == cron("@hourly", "Asia/Tokyo")
    assert schedule_of(None, 30, None) == every("30s")


def test_the_latest_tick_is_asked_for_by_an_instant_of_today() -> None:
    """Against the calendar, by hand."""
    schedule = cron("0 9 * * 1-5", "America/New_York")
    friday = datetime(2026, 11, 20, 14, tzinfo=UTC)
    assert schedule.upto(int((friday + timedelta(days=2)).timestamp() * 1000)) == ms(2026, 11, 20, 14)
