"""Every way in which clocks are turned anywhere, against an oracle that watches each minute."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.schedules.zone_oracle import (
    LINES,
    Line,
    Turn,
    minutes_between,
    ticks_of,
    turns_of_all_zones,
    walls_of,
)
from tickoff.schedules.schedule import Schedule, cron, ticks

YEARS = (2012, 2031) if "TICKOFF_FULL" in os.environ else (2026, 2026)
AROUND = timedelta(hours=15)
DENSE = timedelta(hours=3)
CHUNKS = 8

ODD = [
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # a whole day left out
    ("Pacific/Kwajalein", datetime(1993, 8, 21, 12, tzinfo=UTC)),  # likewise
    ("America/Caracas", datetime(2007, 12, 9, 7, tzinfo=UTC)),  # back by half an hour
    ("Asia/Pyongyang", datetime(2018, 5, 4, 15, tzinfo=UTC)),  # forward by half an hour at midnight
    ("America/Nuuk", datetime(2023, 3, 26, 1, tzinfo=UTC)),  # forward for good
    ("Antarctica/Casey", datetime(2022, 10, 1, 16, tzinfo=UTC)),  # by three hours
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),  # back by half an hour
    ("America/Havana", datetime(2026, 3, 8, 5, tzinfo=UTC)),  # midnight does not exist
]


def window(line: Line, at: datetime) -> list[datetime]:
    around = DENSE if line.text == "* * * * *" else AROUND
    return minutes_between(at - around, at + around)


def check(zone: str, at: datetime) -> None:
    """Each line's ticks around this instant are the oracle's: asked in order, in reverse, at random."""
    for line in LINES:
        minutes = window(line, at)
        expected = ticks_of(line, minutes, walls_of(ZoneInfo(zone), minutes))
        compare(cron(line.text, zone), expected, minutes[0], minutes[-1], at)


def compare(schedule: Schedule, expected: list[int], first: datetime, last: datetime, at: datetime) -> None:
    start, end = (int(edge.timestamp()) * 1000 for edge in (first, last))
    where = (schedule.text, at.isoformat())
    assert forward(schedule, start - 1, end) == expected, where
    assert backward(schedule, start, end) == expected[::-1], where
    turned = int(at.timestamp()) * 1000
    for asked in (turned + quarter * 900_000 + shift for quarter in range(-5, 6) for shift in (0, 40_500)):
        later, former = bisect_right(expected, asked), bisect_left(expected, asked + 1) - 1
        if later < len(expected):
            assert schedule.after(asked) == expected[later], (*where, asked)
        if former >= 0:
            assert schedule.upto(asked) == expected[former], (*where, asked)


def forward(schedule: Schedule, instant: int, end: int) -> list[int]:
    found = []
    for tick in ticks(schedule, instant):
        if tick > end:
            break
        assert tick > instant
        found.append(tick)
        instant = tick
    return found


def backward(schedule: Schedule, start: int, instant: int) -> list[int]:
    found = []
    while (tick := schedule.upto(instant)) is not None and tick >= start:
        assert tick <= instant
        found.append(tick)
        instant = tick - 1
    return found


def check_from_afar(zone: str, wall: datetime, at: datetime) -> None:
    """Ticks on one day of the year, asked for from half a year away: turns lie in between."""
    for start, fixed in (("*/20", False), ("0,20,40", True)):
        day = frozenset({(wall.month, wall.day)})
        hours = "*" if not fixed else "0-23"
        text = f"{start} {hours} {wall.day} {wall.month} *"
        line = Line(text, fixed=fixed, minutes=frozenset({0, 20, 40}), dates=day)
        minutes = minutes_between(at - 2 * AROUND, at + 2 * AROUND)
        expected = ticks_of(line, minutes, walls_of(ZoneInfo(zone), minutes))
        schedule, half_a_year = cron(text, zone), 180 * 86_400_000
        turned = int(at.timestamp()) * 1000
        assert schedule.after(turned - half_a_year) == expected[0], (schedule.text, at.isoformat())
        assert schedule.upto(turned + half_a_year) == expected[-1], (schedule.text, at.isoformat())


def all_turns() -> list[tuple[str, Turn]]:
    return [(zone, turn) for turn, zone in turns_of_all_zones(*YEARS).items()]


@pytest.fixture(scope="module")
def turns() -> list[tuple[str, Turn]]:
    return all_turns()


def test_the_year_has_the_turns_that_are_known(turns: list[tuple[str, Turn]]) -> None:
    """The search for turns finds forward and back, half hours, and zones that never turn."""
    steps = {turn.after - turn.before for _, turn in turns}
    half, hour = timedelta(minutes=30), timedelta(hours=1)
    assert {-hour, -half, timedelta(0), half, hour, 2 * hour} <= steps
    assert len(turns) > 60


@pytest.mark.timeout(3600 if "TICKOFF_FULL" in os.environ else 120)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_tick_is_lost_or_doubled_wherever_clocks_are_turned(
    chunk: int, turns: list[tuple[str, Turn]]
) -> None:
    """All zones: those that turn their clocks alike are tried once."""
    for zone, turn in turns[chunk::CHUNKS]:
        check(zone, turn.minute)


@pytest.mark.timeout(3600 if "TICKOFF_FULL" in os.environ else 120)
def test_a_tick_on_the_day_itself_is_found_from_half_a_year_away(turns: list[tuple[str, Turn]]) -> None:
    """Seen from another season, whose offset is the one before or after the turn."""
    for zone, turn in turns:
        wall = turn.minute.astimezone(ZoneInfo(zone))
        check_from_afar(zone, wall, turn.minute)


@pytest.mark.parametrize(("zone", "at"), ODD, ids=[zone for zone, _ in ODD])
def test_odd_turns_of_the_past_are_met_too(zone: str, at: datetime) -> None:
    """Days left out, half hours, midnights that do not exist."""
    check(zone, at)
