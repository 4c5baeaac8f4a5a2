"""`Defer(after=)` as providers say it: HTTP's Retry-After is a number of seconds, or a date."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from ..errors import Defer


def from_now(said: Defer, now: float) -> Defer:
    """The same, until a date turned into for some seconds; `now` in ms, the store's.

    A date is compared with the clock that all servers share, for that of one machine may be wrong.
    """
    if not isinstance(said.after, str) or "," not in said.after:
        return said
    try:
        until = parsedate_to_datetime(said.after)
    except ValueError:
        return said  # no date: charged as what it is
    return Defer(max(0.0, until.timestamp() - now / 1000), said.why or f"deferred until {said.after}")
