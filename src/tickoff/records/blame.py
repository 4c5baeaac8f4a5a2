"""Whose fault it was: how the end of a call becomes a verdict on its record.

An answer is written, None included. An exception is the record's fault: an attempt is charged, and the
last one makes it FAILED. `Defer` blames the provider and charges nothing; `Reject` gives the record up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CoroutineType
from typing import Any

from ..durations import seconds
from ..errors import ConfigError, Defer, Pause, Reject
from ..tables.base import Charged, Deferred, Done, Failed, Record, Verdict
from ..work import in_short
from .job import RecordJob

LONGEST_ERROR = 500

_NOTHING: Mapping[str, Any] = {}

_ODD = (BaseException, CoroutineType)
"""Kinds of values that are no answers."""

_done: Callable[[tuple[Any, ...]], Done] = partial(tuple.__new__, Done)
"""DONE from its parts, at a fifth of the price."""


class WrongShape(Exception):
    """What the function returned does not fit the result columns; the message says what would."""


def answered(job: RecordJob, record: Record, value: Any) -> Verdict:
    """The verdict for a returned value."""
    columns = job.plan.result
    if isinstance(value, CoroutineType):
        value.close()
        return charged(job, record, "the function returned a coroutine instead of running; use async def")
    if not columns:
        return _done((record.key, _NOTHING))
    if len(columns) == 1:
        return _done((record.key, {columns[0]: value}))
    try:
        return Done(record.key, _spread(columns, value))
    except WrongShape as error:
        return charged(job, record, str(error))


def raised(job: RecordJob, record: Record, error: BaseException) -> Verdict:
    """The verdict for an exception."""
    match error:
        case Defer():
            return _deferred(job, record, error)
        case Reject():
            return Failed(record.key, readable(error.why))
        case Pause():
            return Deferred(record.key, readable(error.why), 0.0)
        case _:
            return charged(job, record, in_short(error))


def overdue(job: RecordJob, records: Sequence[Record]) -> Sequence[Verdict]:
    """The verdicts for a call that took too long; none for one of several records, which is halved."""
    if len(records) > 1:
        return ()
    return [charged(job, record, f"timed out after {job.timeout:g}s") for record in records]


def answered_all(job: RecordJob, records: Sequence[Record], values: Any) -> Sequence[Verdict]:
    """The verdicts for what a call with a list returned: as many items in the same order, or exceptions."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or len(values) != len(records):
        count = f"{len(values)} items" if isinstance(values, Sequence) else type(values).__name__
        wrong = f"{count} were returned for {len(records)} records; return one for each, in their order"
        return [charged(job, record, wrong) for record in records]
    if len(job.plan.result) <= 1 and not any(issubclass(kind, _ODD) for kind in set(map(type, values))):
        return _all_done(job, records, values)
    return [
        raised(job, record, value) if isinstance(value, BaseException) else answered(job, record, value)
        for record, value in zip(records, values, strict=True)
    ]


def _all_done(job: RecordJob, records: Sequence[Record], values: Sequence[Any]) -> Sequence[Verdict]:
    """The common case, for which a look at each value would cost as much as all the rest."""
    keys = [record.key for record in records]
    if not job.plan.result:
        return [_done((key, _NOTHING)) for key in keys]
    (column,) = job.plan.result
    return [_done((key, {column: value})) for key, value in zip(keys, values, strict=True)]


def raised_for_all(job: RecordJob, records: Sequence[Record], error: BaseException) -> Sequence[Verdict]:
    """The verdicts for a call that raised; none when it had several records and one may be to blame."""
    if len(records) > 1 and not isinstance(error, Defer | Pause):
        return ()
    return [raised(job, record, error) for record in records]


def charged(job: RecordJob, record: Record, error: str) -> Verdict:
    """The record's fault: it waits, or it is FAILED when its attempts are used up."""
    attempt = record.attempts + 1
    if attempt >= job.attempts:
        return Failed(record.key, readable(error))
    return Charged(record.key, readable(error), job.backoff.after(attempt))


def readable(text: str) -> str:
    """The text in one line, short enough for a column that people read."""
    line = " ".join(text.replace("\0", " ").split())
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 1]}…"


def _deferred(job: RecordJob, record: Record, error: Defer) -> Verdict:
    try:
        wait = max(0.0, seconds(error.after, "after"))
    except ConfigError as wrong:
        return charged(job, record, f"Defer was raised with a wrong {wrong}")
    return Deferred(record.key, readable(str(error)), wait)


def _spread(columns: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    """The value over several columns: None for all, a mapping with exactly these keys, or as many items."""
    if value is None:
        return dict.fromkeys(columns)
    if isinstance(value, Mapping):
        if value.keys() != set(columns):
            raise WrongShape(f"the mapping has the keys {_listed(value)}, the result {_listed(columns)}")
        return value
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise WrongShape(
            f"{type(value).__name__} was returned for the result {_listed(columns)}; "
            "return a tuple of as many values, a mapping of them, or None"
        )
    if len(value) != len(columns):
        raise WrongShape(f"{len(value)} values were returned for the result {_listed(columns)}")
    return dict(zip(columns, value, strict=True))


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names)
