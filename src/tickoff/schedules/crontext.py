"""Cron lines as people write them: read by cronsim, refused in words that name the field."""

from __future__ import annotations

import difflib
from copy import copy
from datetime import datetime

from cronsim import CronSim, CronSimError

from ..errors import ConfigError

_LONGEST = 200
_START = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock's, in whatever zone
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT",
}
_EXAMPLE = 'write five fields such as "0 * * * *", or "@hourly"'


def normal(expression: str) -> str:
    """The line in its one spelling: aliases written out, capitals, single spaces."""
    if not isinstance(expression, str):
        raise ConfigError(f"cron={expression!r:.60} is not a text; {_EXAMPLE}")
    if len(expression) > _LONGEST:
        raise ConfigError(f"cron={expression[:40]!r}… has {len(expression)} characters; {_EXAMPLE}")
    if not expression.isascii() or not expression.replace("\t", " ").strip().isprintable():
        raise ConfigError(f"cron={expression!r} has characters that no cron line has; {_EXAMPLE}")
    if expression.strip().startswith("@"):
        return _written_out(expression.strip().lower())
    return " ".join(expression.upper().split())


def _written_out(alias: str) -> str:
    if alias == "@reboot":
        raise ConfigError(
            'cron="@reboot" is no instant that servers could agree on; call it where the server starts'
        )
    if alias not in _ALIASES:
        near = difflib.get_close_matches(alias, _ALIASES, n=1) or ["@hourly"]
        raise ConfigError(
            f'cron={alias!r} is unknown; did you mean "{near[0]}"? There are: {", ".join(_ALIASES)}'
        )
    return _ALIASES[alias]


def parsed(text: str) -> CronSim:
    """The line as cronsim reads it; refused where it means nothing, or nothing that ever comes."""
    parts = text.split()
    if len(parts) == 6:
        raise ConfigError(
            f"cron={text!r} has 6 fields; programs disagree whether seconds come first or last, so "
            'write 5 (minute hour day month weekday), and every="10s" for seconds'
        )
    if len(parts) != 5:
        raise ConfigError(f"cron={text!r} has {len(parts)} fields instead of 5; {_EXAMPLE}")
    line = _understood(text, parts)
    if next(copy(line), None) is None:
        raise ConfigError(_never(text))
    return line


def _understood(text: str, parts: list[str]) -> CronSim:
    try:
        return CronSim(text, _START)
    except CronSimError as error:
        named = str(error).removeprefix("Bad ")
        if named == "day-of-month" and _is_a_day(parts[2]):
            raise ConfigError(_never(text)) from None
        index = list(_FIELDS).index(named)
        raise ConfigError(
            f"cron={text!r}: the {named} {parts[index]!r} is not understood; write {_FIELDS[named]}"
        ) from None


def _is_a_day(part: str) -> bool:
    try:
        CronSim(f"0 0 {part} * *", _START)
    except CronSimError:
        return False
    return True


def _never(text: str) -> str:
    return f"cron={text!r} never fires: no such day ever comes; correct the day-of-month or the month"
