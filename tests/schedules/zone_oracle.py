"""What ticks there must be, found the long way: minute by minute, watching a wall clock.

Knows nothing of how the schedules are computed: neither cronsim nor folds nor bisection, only what a clock on
the wall shows at each minute of UTC, and the rule of docs/schedules.md in its own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
EVERY_HOUR = frozenset(range(24))
EVERY_MINUTE = frozenset(range(60))
EVERY_WEEKDAY = frozenset(range(7))


@dataclass(frozen=True)
class Line:
    """A cron line, and what it means, written down by hand."""

    text: str
    fixed: bool
    minutes: frozenset[int]
    hours: frozenset[int] = EVERY_HOUR
    weekdays: frozenset[int] = EVERY_WEEKDAY  # Monday is 0
    dates: frozenset[tuple[int, int]] | None = None  # month, day

    def names(self, wall: datetime) -> bool:
        today = self.dates is None or (wall.month, wall.day) in self.dates
        at_time = wall.minute in self.minutes and wall.hour in self.hours
        return at_time and today and wall.weekday() in self.weekdays


def some(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


LINES = [
    Line("* * * * *", fixed=False, minutes=EVERY_MINUTE),
    Line("0 * * * *", fixed=False, minutes=some(0)),
    Line("*/15 * * * *", fixed=False, minutes=some(0, 15, 30, 45)),
    Line("30 */2 * * *", fixed=False, minutes=some(30), hours=frozenset(range(0, 24, 2))),
    Line("*/20 1-3 * * *", fixed=False, minutes=some(0, 20, 40), hours=some(1, 2, 3)),
    Line("*/30 0 * * SUN", fixed=False, minutes=some(0, 30), hours=some(0), weekdays=some(6)),
    Line("0 0 * * *", fixed=True, minutes=some(0), hours=some(0)),
    Line("30 2 * * *", fixed=True, minutes=some(30), hours=some(2)),
    Line("15,45 0-3 * * *", fixed=True, minutes=some(15, 45), hours=some(0, 1, 2, 3)),
    Line("59 1,23 * * *", fixed=True, minutes=some(59), hours=some(1, 23)),
    Line("0 0-23 * * *", fixed=True, minutes=some(0)),
    Line("0-59 2 * * 0", fixed=True, minutes=EVERY_MINUTE, hours=some(2), weekdays=some(6)),
    Line("10 3 * * 1-5", fixed=True, minutes=some(10), hours=some(3), weekdays=frozenset(range(5))),
]


def minutes_between(first: datetime, last: datetime) -> list[datetime]:
    return [first + number * MINUTE for number in range(int((last - first) / MINUTE) + 1)]


def ticks_of(line: Line, minutes: Sequence[datetime], walls: Sequence[datetime]) -> list[int]:
    """The ticks in these minutes of UTC, given what the clock shows at each."""
    watch = _times_come if line.fixed else _times_shown
    return [int(minutes[at].timestamp()) * 1000 for at in watch(line, walls)]


def _times_shown(line: Line, walls: Sequence[datetime]) -> Iterator[int]:
    """A line with a star: due whenever the clock shows one of its times."""
    return (at for at, wall in enumerate(walls) if line.names(wall))


def _times_come(line: Line, walls: Sequence[datetime]) -> Iterator[int]:
    """A line with fixed times: each has come once the clock shows it or something later, and comes once."""
    furthest = walls[0] - MINUTE
    for at, wall in enumerate(walls):
        come = minutes_between(furthest + MINUTE, wall) if wall > furthest else []
        furthest = max(furthest, wall)
        if any(line.names(time) for time in come):
            yield at


def walls_of(zone: ZoneInfo, minutes: Sequence[datetime]) -> list[datetime]:
    """What the zone's clocks show, without saying which of two."""
    return [minute.astimezone(zone).replace(tzinfo=None, fold=0) for minute in minutes]


@dataclass(frozen=True)
class Turn:
    """A minute of UTC from which on clocks have another offset; the same one: an ordinary minute."""

    minute: datetime
    before: timedelta
    after: timedelta


def turns_of_all_zones(first_year: int, last_year: int) -> dict[Turn, str]:
    """Every way in which clocks are turned in these years, and one of the zones that do so."""
    found: dict[Turn, str] = {}
    for name in sorted(available_timezones() - {"localtime", "Factory", "posixrules"}):
        for turn in _turns_of(ZoneInfo(name), first_year, last_year):
            found.setdefault(turn, name)
    return found


def _turns_of(zone: ZoneInfo, first_year: int, last_year: int) -> list[Turn]:
    start, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    looks = [
        start + timedelta(hours=6) * number for number in range(int((end - start) / timedelta(hours=6)) + 1)
    ]
    offsets = [_offset(zone, look) for look in looks]
    changes = [at for at in range(1, len(looks)) if offsets[at - 1] != offsets[at]]
    turned = [Turn(_minute(zone, looks[at]), offsets[at - 1], offsets[at]) for at in changes]
    return turned or [Turn(start, offsets[0], offsets[0])]


def _minute(zone: ZoneInfo, late: datetime) -> datetime:
    """The minute within the six hours before in which the offset becomes what it is at the end."""
    minute = late
    while _offset(zone, minute - MINUTE) == _offset(zone, late):
        minute -= MINUTE
    return minute


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None
    return offset
