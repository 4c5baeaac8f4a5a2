"""The arguments of `@jobs.each(...)`, read and checked before anything is connected to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..counts import count
from ..durations import Duration, seconds, ttl_ms
from ..errors import ConfigError
from ..names import LONGEST_NAME, has_control_characters
from ..tables.base import Plan
from .backoff import backoff_of
from .job import RecordJob
from .limit import Bounds, concurrency_of
from .rate import pace_of

Columns = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Described:
    """A job over records that has no function yet."""

    plan: Plan
    options: dict[str, Any]

    def of(self, function: Callable[..., Any], name: str) -> RecordJob:
        """The job of this name that calls this function."""
        return RecordJob(name=name, function=function, plan=self.plan, **self.options)


def read_job(
    table: str,
    *,
    status: str,
    key: Columns,
    result: Columns,
    where: Any,
    columns: Columns | None,
    companion: bool | str,
    per_call: int | None,
    concurrency: Any,
    rate: str | None,
    flush: int | None,
    circuit: bool,
    ttl: Duration,
    timeout: Duration | None,
    attempts: int,
    backoff: Duration | tuple[Duration, Duration],
) -> Described:
    """The job as the arguments describe it; a wrong one is refused by its name."""
    length = ttl_ms(ttl) / 1000
    plan = Plan(
        table=_text(table, "table"),
        status=_text(status, "status"),
        key=_names(key, "key"),
        result=_names(result, "result"),
        columns=None if columns is None else _names(columns, "columns"),
        where=condition_of(where),
        companion=_companion(companion, table, status),
    )
    options = {
        **_concurrency(concurrency),
        "pace": None if rate is None else pace_of(rate),
        "flush": None if flush is None else count(flush, "flush"),
        "circuit": _switch(circuit, "circuit"),
        "per_call": None if per_call is None else count(per_call, "per_call"),
        "ttl": length,
        "timeout": length if timeout is None else _positive(timeout, "timeout"),
        "attempts": count(attempts, "attempts"),
        "backoff": backoff_of(backoff),
    }
    return Described(plan, options)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{field}={value!r} is not a name; give the name as the database knows it")
    if len(value) > LONGEST_NAME or has_control_characters(value):
        raise ConfigError(
            f"{field}={value!r:.60} is no name that a database has: it is too long or has control characters"
        )
    return value


def _companion(value: Any, table: str, status: str) -> str | None:
    """The table beside the user's, by the name given, or one made of the user's and the status."""
    if not isinstance(value, bool):
        return _text(value, "companion")
    return f"{table}_{status}" if value else None


def _names(value: Any, field: str) -> tuple[str, ...]:
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        raise ConfigError(f'{field}={value!r} is not a column; write "a" or ("a", "b")')
    names = tuple(_text(name, field) for name in listed)
    if len(set(names)) != len(names):
        raise ConfigError(f"{field}={value!r} names a column twice; name it once")
    return names


def condition_of(value: Any) -> Any:
    """A condition as it was given, once it is one; None means all."""
    if value is None or isinstance(value, sa.ColumnElement) or _is_sql(value):
        return value
    raise ConfigError(
        f"where={value!r} is no condition; write SQL such as \"country = 'IN'\" or an SQLAlchemy expression"
    )


def _concurrency(value: Any) -> dict[str, Any]:
    read = concurrency_of(value)
    if isinstance(read, Bounds):
        return {"concurrency": read.most, "bounds": read}
    return {"concurrency": read}


def _switch(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{field}={value!r} is neither True nor False; give one of them")
    return value


def _is_sql(value: Any) -> bool:
    """Whether it may be SQL: lines of text."""
    if not isinstance(value, str) or not value.strip():
        return False
    return not has_control_characters(" ".join(value.split()))


def _positive(value: Duration, field: str) -> float:
    length = seconds(value, field)
    if length <= 0:
        raise ConfigError(f'{field}={value!r} is not above zero; give a duration such as "30s"')
    return length
