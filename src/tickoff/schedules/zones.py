"""Time zones: one by its name, the host's, and when the clocks of a zone are turned."""

from __future__ import annotations

import difflib
import os
import re
import zoneinfo
from datetime import datetime
from pathlib import Path, PurePath
from zoneinfo import ZoneInfo

from ..errors import ConfigError

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
_DATABASE = re.compile(r".*/zoneinfo[^/]*/(?:posix/)?(.+)", re.ASCII)
_LONGEST = 64
_OWN_TO_A_HOST = {"localtime", "posixrules", "Factory"}
_EXAMPLE = 'write an IANA name such as "Europe/Berlin" or "UTC"'


def load(name: str, field: str = "tz") -> ZoneInfo:
    """The zone of that name; `field` is how the error calls it."""
    if not isinstance(name, str):
        raise ConfigError(f"{field}={name!r:.60} is not a text; {_EXAMPLE}")
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise ConfigError(f"{field}={name[:_LONGEST]!r} is no time zone; {_EXAMPLE}")
    if name in _OWN_TO_A_HOST or name.startswith(("posix/", "right/")):
        raise ConfigError(f"{field}={name!r} is not the same on every host; {_EXAMPLE}")
    try:
        return ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
        raise ConfigError(f"{field}={name!r} is an unknown time zone; {_instead_of(name)}") from None


def local(zone: ZoneInfo, second: int) -> datetime:
    """What the zone's clocks show at this second since the epoch."""
    return datetime.fromtimestamp(second, zone)


def turn(zone: ZoneInfo, before: int, after: int) -> int:
    """The second at which clocks are turned, sought between two seconds with different offsets."""
    old = local(zone, before).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if local(zone, middle).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def host_zone() -> str:
    """The IANA name of this host's zone: by TZ, else by the system's settings; UTC where nothing is set."""
    set_to = os.environ.get("TZ")
    if set_to is not None:
        return _of_environment(set_to)
    if LOCALTIME.is_symlink():
        return _of_link()
    if TIMEZONE.is_file():
        return _of_file()
    if LOCALTIME.exists():
        raise ConfigError(f"{LOCALTIME} is a copy that does not say its zone's name; set TZ, or pass --tz")
    return "UTC"  # which is what the C library takes, and so cron


def _of_environment(set_to: str) -> str:
    name = set_to.removeprefix(":")
    if name == str(LOCALTIME) and LOCALTIME.is_symlink():
        return _of_link()
    inside = _DATABASE.fullmatch(name)
    return load(inside[1] if inside else name or "UTC", "TZ").key


def _of_link() -> str:
    target = os.path.realpath(LOCALTIME)
    inside = _DATABASE.fullmatch(target)
    if not inside:
        raise ConfigError(f"{LOCALTIME} leads to {target}, which names no zone; set TZ, or pass --tz")
    return load(inside[1], str(LOCALTIME)).key


def _of_file() -> str:
    return load(TIMEZONE.read_text("utf-8", errors="replace").strip(), str(TIMEZONE)).key


def _instead_of(name: str) -> str:
    """A near miss, when there is one: the same name in other letters, a city without its region, a typo."""
    known = {zone.casefold(): zone for zone in sorted(zoneinfo.available_timezones())}
    wanted = name.casefold().replace(" ", "_")
    cities = {PurePath(folded).name: zone for folded, zone in known.items() if "/" in folded}
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.75) if "/" in name else []
    found = known.get(wanted) or cities.get(wanted) or (known[near[0]] if near else None)
    return f'did you mean "{found}"?' if found else _EXAMPLE
