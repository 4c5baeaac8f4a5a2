"""The two ways to settle records, and what each is given: DONE with a result, or elsewhere with an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .base import Charged, Deferred, Failed, State
from .dialects import Dialect, Moment
from .rows import Columns
from .shape import Shape

LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Way:
    """One way to change rows: the columns that differ from row to row, and what they become."""

    given: tuple[tuple[str, Any], ...]
    """Names and types of the values given for each row."""
    change: Callable[[Callable[[str], Any]], dict[Any, Any]]
    """The new values of the columns, from what is given."""
    moment: sa.ColumnElement[Any] | None = None
    """What is written as the instant, where it is the same for all rows."""

    @property
    def names(self) -> list[str]:
        """The names of what is given."""
        return [name for name, _ in self.given]

    @property
    def unfit_for_arrays(self) -> bool:
        """Whether a value is itself an array, which would melt into the others."""
        return any(isinstance(kind, sa.ARRAY) for _, kind in self.given)


Ways = list[tuple[Way, Columns]]
"""What is given for each way: the columns of the keys, then its own."""


def done(shape: Shape, dialect: Dialect) -> Way:
    """DONE with its result; the token stays, so that a repeated flush is recognised."""
    results = {name: shape.table.c[name] for name in shape.plan.result}
    given = tuple((f"result {name}", _given_type(column.type)) for name, column in results.items())

    def change(value: Callable[[str], Any]) -> dict[Any, Any]:
        told = {column: value(f"result {name}") for name, column in results.items()}
        worked = {shape.status: State.DONE.value, shape.until: dialect.now}
        return {**told, **worked, shape.error: sa.null()}

    return Way(given, change, dialect.now)


def put(shape: Shape, dialect: Dialect) -> Way:
    """Put where the verdict says, with its error; charged or not."""
    given = (("state", sa.String()), ("charge", sa.Integer()), ("error", sa.Text()), ("wait", sa.Float()))

    def change(value: Callable[[str], Any]) -> dict[Any, Any]:
        state = value("state")
        if isinstance(shape.status.type, sa.Enum):
            state = sa.cast(state, shape.status.type)
        return {
            shape.status: state,
            shape.attempts: shape.attempts + value("charge"),
            shape.error: value("error"),
            shape.until: sa.type_coerce(dialect.after(value("wait")), Moment),
        }

    return Way(given, change)


def put_values(verdict: Charged | Deferred | Failed) -> tuple[str, int, str, float]:
    """What the second way is given."""
    match verdict:
        case Charged(_, error, wait):
            return State.PENDING.value, 1, _readable(error), wait
        case Deferred(_, why, wait):
            return State.PENDING.value, 0, _readable(why), wait
        case Failed(_, error):
            return State.FAILED.value, 1, _readable(error), 0.0


def _readable(error: str) -> str:
    """An error that every database takes: no NUL, no half characters, not endless."""
    plain = error.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")
    return plain if len(plain) <= LONGEST_ERROR else f"{plain[: LONGEST_ERROR - 1]}…"


def _given_type(kind: Any) -> Any:
    """The type a result is sent as: a text at its full length, so that one too long is refused, not cut."""
    return sa.Text() if isinstance(kind, sa.String) and not isinstance(kind, sa.Enum) else kind
