"""`rate="100/s"`: how many calls the whole fleet may make, as a limit for each window of the store's time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_TEXT = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h)", re.ASCII)
_HIGHEST = 100_000.0

_MARGIN = 0.97
"""The part of the rate that is lent: the provider counts by its own clock, and shall not see more."""

_BLOCK = 10
"""So many calls make a window worth its request…"""

_LONGEST = 5.0
"""…unless they take longer than this; a window of one call is as long as it has to be."""


@dataclass(frozen=True, slots=True)
class Pace:
    """So many calls by the whole fleet in each window of so many ms."""

    limit: int
    window: int

    def key(self, provider: str) -> str:
        """What the store keeps the loans under; another pace is another key, whose windows differ."""
        return f"{provider}@{self.limit}/{self.window}"


def pace_of(value: Any) -> Pace:
    """Read a rate; one that cannot be kept is refused."""
    found = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(f'rate={value!r} is not a rate; write calls per second, minute or hour: "100/s"')
    each_second = float(found[1]) / _UNITS[found[2]]
    if not 0 < each_second <= _HIGHEST:
        raise ConfigError(f'rate={value!r} is not between 0 and {_HIGHEST:g}/s; write such as "100/s"')
    return _paced(each_second * _MARGIN)


def _paced(each_second: float) -> Pace:
    if each_second >= _BLOCK:
        limit = math.floor(each_second)
    else:
        limit = max(1, min(_BLOCK, math.floor(each_second * _LONGEST)))
    return Pace(limit, math.ceil(limit / each_second * 1000))
