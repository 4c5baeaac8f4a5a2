"""A time as people type it."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

from ..errors import ConfigError

_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def instant_of(text: str, now: datetime | None = None) -> datetime:
    """An aware instant, in this machine's zone unless it names one; of a time alone, the last there was."""
    present = (now or datetime.now().astimezone()).astimezone()
    if _TIME.fullmatch(text):
        return _last(text, present)
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise _unread(text) from None
    return read if read.tzinfo else read.astimezone()


def _last(text: str, present: datetime) -> datetime:
    """The latest instant at which clocks here showed this time."""
    try:
        shown = time.fromisoformat(text if text[1] != ":" else f"0{text}")
    except ValueError:
        raise _unread(text) from None
    today = datetime.combine(present.date(), shown)
    here = today.astimezone()
    return here if here <= present else (today - timedelta(days=1)).astimezone()


def _unread(text: str) -> ConfigError:
    return ConfigError(f'TICK={text!r:.60} is no time; write 02:30, "2026-03-29 02:30" or 2026-03-29T02:30Z')
