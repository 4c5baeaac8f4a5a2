"""Schedules: cron text or a period, and the ticks they mean. Pure values: every server computes the same.

Daylight saving follows one named rule, the crontab rule (docs/schedules.md): a line at fixed times runs once
for each time it names; a line whose minute or hour begins with a star goes by what clocks really show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ..durations import Duration, period_ms, spelled
from ..errors import ConfigError
from .crontext import normal, parsed
from .zones import host_zone, load, local, turn

__all__ = ["Cron", "Every", "Schedule", "cron", "every", "host_zone", "read", "schedule_of", "ticks"]

LAST_INSTANT = 250_000_000_000_000
"""No schedule ticks after this instant (in the year 9892): dates end soon after."""

_DAY = 86_400_000
_DIGESTED = 20
_MINUTE = timedelta(minutes=1)


class Schedule(Protocol):
    """When a job is due. Instants are ms since the epoch; ticks lie after the epoch itself."""

    @property
    def text(self) -> str:
        """What people and other servers are shown; equal text, equal schedule."""

    def after(self, instant: int) -> int | None:
        """The first tick strictly after the instant; None: never again."""

    def upto(self, instant: int) -> int | None:
        """The latest tick at or before the instant; None: there was none."""

    def digest(self, now: int) -> str:
        """A hash of the ticks from the start of this UTC day: it differs where servers' zone data do."""


@dataclass(frozen=True, slots=True)
class Every:
    """A tick at each whole multiple of a period since the epoch, so that servers agree without talking."""

    period: int

    @property
    def text(self) -> str:
        """Such as "every 1h30m", however it was written."""
        return f"every {spelled(self.period)}"

    def after(self, instant: int) -> int | None:
        """The first tick strictly after the instant."""
        tick = (max(instant, 0) // self.period + 1) * self.period
        return tick if tick <= LAST_INSTANT else None

    def upto(self, instant: int) -> int | None:
        """The latest tick at or before the instant."""
        tick = min(instant, LAST_INSTANT) // self.period * self.period
        return tick if tick > 0 else None

    def digest(self, now: int) -> str:
        """A hash of the ticks from the start of this UTC day."""
        return _digest(self, now // _DAY)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron line in a zone. The line is matched against wall clocks; the crontab rule leads to instants."""

    expression: str
    tz: str
    _line: CronSim = field(repr=False, compare=False)
    _zone: ZoneInfo = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[[str, str], Schedule], tuple[str, str]]:
        return cron, (self.expression, self.tz)

    @property
    def text(self) -> str:
        """The line and its zone, such as "0 * * * * Europe/Berlin"."""
        return f"{self.expression} {self.tz}"

    @property
    def fixed(self) -> bool:
        """Whether the line names its times, rather than recurring within the day by a star."""
        return not any(part.startswith("*") for part in self.expression.split()[:2])

    def after(self, instant: int) -> int | None:
        """The first tick strictly after the instant; None in the far future only."""
        if instant >= LAST_INSTANT:
            return None
        tick = _next(self, max(instant, 0) // 1000)
        return tick * 1000 if tick is not None and tick * 1000 <= LAST_INSTANT else None

    def upto(self, instant: int) -> int | None:
        """The latest tick at or before the instant."""
        if instant <= 0:
            return None
        tick = self._latest(min(instant, LAST_INSTANT) // 1000)
        return tick * 1000 if tick is not None and tick > 0 else None

    def digest(self, now: int) -> str:
        """A hash of the ticks from the start of this UTC day."""
        return _digest(self, now // _DAY)

    def note(self, tick: int) -> str:
        """What the clock's turning has to do with this tick; mostly nothing."""
        second = tick // 1000
        here, before = local(self._zone, second), local(self._zone, second - 1)
        if here.fold or _is_repeated(here):
            return (
                f"clock goes back: {here:%H:%M} comes twice, this is the {'second' if here.fold else 'first'}"
            )
        named = next(self._walls(_wall(before)), None) if self.fixed else None
        if named is None or named >= _wall(here):
            return ""
        return f"clock goes forward: there is no {named:%H:%M}, moved here"

    def next_second(self, second: int) -> int | None:
        """The first tick strictly after the second, in seconds as `second` is."""
        here = local(self._zone, second)
        found = self._forward(_wall(here), second)
        if here.fold or not _is_repeated(here):
            return found
        # Clocks will be put back: what they then show again comes before what follows on the clock.
        back = turn(self._zone, second, second + _repeated(here))
        if found is not None and found < back:
            return found
        return self._forward(_wall(local(self._zone, back)) - _MINUTE, back - 1)

    def _latest(self, second: int) -> int | None:
        here = local(self._zone, second)
        found = self._backward(_wall(here), second)
        if not here.fold:
            return found
        # Clocks were put back: before that they had been further than they are now.
        back = turn(self._zone, second - _repeated(here), second)
        if found is not None and found >= back:
            return found
        return self._backward(_wall(local(self._zone, back - 1)), back - 1)

    def _forward(self, wall: datetime, second: int) -> int | None:
        """The first tick after the second among the times that follow the wall clock's."""
        later = (at for time in self._walls(wall) for at in self._seconds_of(time) if at > second)
        return next(later, None)

    def _backward(self, wall: datetime, second: int) -> int | None:
        """The latest tick up to the second among the times up to the wall clock's."""
        times = self._walls(wall, back=True)
        former = (at for time in times for at in reversed(self._seconds_of(time)) if at <= second)
        return next(former, None)

    def _walls(self, wall: datetime, *, back: bool = False) -> Iterator[datetime]:
        """The times the line names after a wall clock's, or back from it, it included."""
        minute = wall.replace(second=0)
        walk = copy(self._line)  # parsed once; walking changes no more than these two
        walk.dt, walk.tick_direction = (minute + _MINUTE, -1) if back else (minute, 1)
        return walk

    def _seconds_of(self, wall: datetime) -> tuple[int, ...]:
        """The crontab rule: when clocks that show this time mean a tick."""
        early = wall.replace(tzinfo=self._zone)
        first, second = int(early.timestamp()), int(early.replace(fold=1).timestamp())
        if first == second:
            return (first,)
        if first < second:  # the clock shows it twice
            return (first,) if self.fixed else (first, second)
        return (turn(self._zone, second, first),) if self.fixed else ()


def cron(expression: str, tz: str | None = None) -> Schedule:
    """A cron line as a schedule; in UTC unless a zone is given."""
    text = normal(expression)
    zone = load("UTC" if tz is None else tz)
    return Cron(text, zone.key, parsed(text), zone)


def every(length: Duration) -> Schedule:
    """A period as a schedule."""
    return Every(period_ms(length, "every"))


_read_cron, _read_every = cron, every  # `schedule_of` has parameters of these names


def schedule_of(cron: str | None, every: Duration | None, tz: str | None) -> Schedule:
    """The schedule meant by options of which exactly one of `cron` and `every` is given."""
    if cron is not None and every is None:
        return _read_cron(cron, tz)
    if every is None or cron is not None:
        raise ConfigError('give exactly one of cron, such as "0 * * * *", and every, such as "30s"')
    if tz is not None:
        raise ConfigError(f"tz={tz!r:.60} means nothing to every, which counts from the epoch; leave it out")
    return _read_every(every)


def read(text: str) -> Schedule:
    """A schedule from its own text, as other servers tell it."""
    if text.startswith("every "):
        return _read_every(text.removeprefix("every "))
    expression, _, zone = text.rpartition(" ")
    return _read_cron(expression, zone)


def ticks(schedule: Schedule, instant: int) -> Iterator[int]:
    """The ticks strictly after an instant, as long as there are any."""
    while (tick := schedule.after(instant)) is not None:
        yield tick
        instant = tick


@lru_cache(maxsize=4096)  # jobs with one line ask at one instant: thousands, at the full hour
def _next(schedule: Cron, second: int) -> int | None:
    return schedule.next_second(second)


@lru_cache(maxsize=20_000)  # asked for by each heartbeat, and the same the whole day
def _digest(schedule: Schedule, day: int) -> str:
    first = islice(ticks(schedule, day * _DAY - 1), _DIGESTED)
    return hashlib.sha256(",".join(map(str, first)).encode()).hexdigest()[:12]


def _wall(here: datetime) -> datetime:
    return here.replace(tzinfo=None, fold=0)


def _is_repeated(here: datetime) -> bool:
    """Whether clocks show this real time twice."""
    return here.replace(fold=0).utcoffset() != here.replace(fold=1).utcoffset()


def _repeated(here: datetime) -> int:
    """How many seconds lie between the two instants at which clocks show this time."""
    return int(here.replace(fold=1).timestamp() - here.replace(fold=0).timestamp())
