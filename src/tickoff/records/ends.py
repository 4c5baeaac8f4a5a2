"""How calls end: what that means for their records, and who else has to know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..durations import seconds
from ..errors import ConfigError, Defer, Pause, Reject
from ..ground.clocks import elapsed
from ..work import in_short
from . import blame
from .circuit import kind_of
from .claim import Call
from .job import RecordJob
from .provider import Provider
from .retryafter import from_now

_log = logging.getLogger("tickoff")

OnPause = Callable[[str], None]
"""Told when the work asks for a pause, with the reason."""


class Ends:
    """Takes in the end of each call, from all threads."""

    def __init__(
        self, job: RecordJob, provider: Provider, on_pause: OnPause, on_news: Callable[[], None]
    ) -> None:
        self._job = job
        self._provider = provider
        self._on_pause = on_pause
        self._on_news = on_news
        self._seen: set[type[BaseException]] = set()

    def value(self, call: Call, value: Any) -> None:
        """The call returned."""
        now = elapsed()
        if self._job.per_call is None:
            self._provider.answered(call, [blame.answered(self._job, call.records[0], value)], now)
            return
        items: Sequence[Any] = ()
        if isinstance(value, list | tuple) and _holds_errors(value):
            value = items = [self._read(item) for item in value]
        self._obey((item for item in items if isinstance(item, BaseException)), now)
        verdicts = blame.answered_all(self._job, call.records, value)
        if items and all(map(_is_failure, items)) and len(items) == len(call.records):
            self._provider.failed(call, verdicts, kind_of(items[0]), in_short(items[0]), now)
        else:
            self._provider.answered(call, verdicts, now)

    def error(self, call: Call, error: BaseException) -> None:
        """The call raised."""
        now, error = elapsed(), self._read(error)
        verdicts = blame.raised_for_all(self._job, call.records, error)
        if _is_failure(error):
            self._report(error)
            self._provider.failed(call, verdicts, kind_of(error), in_short(error), now)
        else:
            self._obey([error], now)
            self._provider.answered(call, verdicts, now)

    def overdue(self, call: Call, *, goes_on: bool = False) -> bool:
        """The call took too long, and was ended or goes on; whether that is news."""
        verdicts = blame.overdue(self._job, call.records)
        return self._provider.overdue(call, verdicts, elapsed(), goes_on=goes_on)

    def _obey(self, said: Iterable[BaseException], now: float) -> None:
        for one in said:
            if isinstance(one, Pause):
                self._on_pause(one.why)
            elif isinstance(one, Defer) and self._provider.deferred(_wait(one), str(one), now):
                self._on_news()

    def _read(self, said: Any) -> Any:
        return from_now(said, self._provider.time.now()) if isinstance(said, Defer) else said

    def _report(self, error: BaseException) -> None:
        """The first of each kind with its traceback: a million records may fail alike."""
        first = type(error) not in self._seen
        self._seen.add(type(error))
        level = logging.ERROR if first else logging.DEBUG
        about = {"job": self._job.name}
        _log.log(level, "%s: %s", self._job.name, in_short(error), exc_info=error, extra=about)


def _holds_errors(items: Sequence[Any]) -> bool:
    """Whether an exception is among them; they are of few types, so that is quickly said."""
    return any(issubclass(kind, BaseException) for kind in set(map(type, items)))


def _is_failure(item: Any) -> bool:
    """Whether it is an error that may be the record's fault or the provider's."""
    return isinstance(item, BaseException) and not isinstance(item, Defer | Reject | Pause)


def _wait(defer: Defer) -> float:
    try:
        return seconds(defer.after, "after")
    except ConfigError:  # charged to the record, with what is wrong
        return 0.0
