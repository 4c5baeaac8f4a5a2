"""Settling: verdicts become states, guarded by IN_FLIGHT and the claim's token, result and DONE together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from .base import Charged, Deferred, Done, Failed, Key, Settled, State, Verdict
from .dialects import Moment
from .ledger import ledger
from .rows import Rows, chunks, columns_of

LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Way:
    """One way to change rows: the columns that differ from row to row, and what they become."""

    given: tuple[tuple[str, Any], ...]
    """Names and types of the values given for each row."""
    change: Callable[[Callable[[str], Any]], dict[Any, Any]]
    """The new values of the columns, from what is given."""


class Settling:
    """The statements of flushes on one shape."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect

    def settle(self, connection: sa.Connection, token: str, verdicts: Sequence[Verdict]) -> Settled:
        """Write what is still ours; tell apart what was written before, what is locked and what is lost."""
        written: set[Key] = set()
        for way, values in self._sorted(verdicts):
            written |= self._write(connection, way, token, values)
        rest = [verdict.key for verdict in verdicts if verdict.key not in written]
        if not rest:
            return Settled(frozenset(written))
        states = self._states(connection, token, rest)
        busy = {key for key, state in states.items() if state == State.IN_FLIGHT}
        refused = set(rest) - set(states)
        return Settled(frozenset(written | (set(states) - busy)), frozenset(refused), frozenset(busy))

    def close(self, connection: sa.Connection, token: str) -> None:
        """Strike the claim off the ledger."""
        mine = (ledger.c.record == self._shape.record) & (ledger.c.token == token)
        connection.execute(sa.delete(ledger).where(mine))

    def _sorted(self, verdicts: Sequence[Verdict]) -> Iterator[tuple[Way, list[tuple[Any, ...]]]]:
        done: list[tuple[Any, ...]] = []
        put: list[tuple[Any, ...]] = []
        for verdict in verdicts:
            if isinstance(verdict, Done):
                done.append((*verdict.key, *(verdict.values.get(name) for name in self._shape.plan.result)))
            else:
                put.append((*verdict.key, *_put_values(verdict)))
        if done:
            yield self._done, done
        if put:
            yield self._put, put

    def _write(
        self, connection: sa.Connection, way: Way, token: str, values: list[tuple[Any, ...]]
    ) -> set[Key]:
        if self._dialect.takes_arrays and not any(isinstance(kind, sa.ARRAY) for _, kind in way.given):
            arrays = columns_of(values, "g") | {"token": token}
            return {tuple(row) for row in connection.execute(self._at_once(way), arrays)}
        return self._one_by_one(connection, way, token, values)

    def _at_once(self, way: Way) -> sa.Update:
        """All rows by one statement, their values in arrays; locked in key order first."""
        statement = self._built.get(way.given)
        if statement is None:
            statement = self._built[way.given] = self._build_at_once(way)
        return statement

    @cached_property
    def _built(self) -> dict[Any, sa.Update]:
        return {}

    def _build_at_once(self, way: Way) -> sa.Update:
        key = self._shape.key
        fields = [
            (f"g{i}", kind) for i, kind in enumerate([*(c.type for c in key), *(k for _, k in way.given)])
        ]
        given = self._rows.given(fields, "given").subquery("given")
        same = [column == given.c[f"g{i}"] for i, column in enumerate(key)]
        ours = self._rows.ours(sa.bindparam("token", type_=sa.String))
        mine = self._rows.locked(sa.select(given).join(self._shape.table, sa.and_(*same)).where(ours)).cte(
            "mine"
        )
        places = {name: f"g{i}" for i, (name, _) in enumerate(way.given, start=len(key))}
        change = way.change(lambda name: mine.c[places[name]])
        matched = [column == mine.c[f"g{i}"] for i, column in enumerate(key)]
        return sa.update(self._shape.table).where(*matched).values(change).returning(*key)

    def _one_by_one(
        self, connection: sa.Connection, way: Way, token: str, values: list[tuple[Any, ...]]
    ) -> set[Key]:
        width = len(self._shape.key)
        mine = self.lock(connection, token, [row[:width] for row in values])
        bound = [_bound(row) for row in values if row[:width] in mine]
        if bound:
            connection.execute(self._each(way), bound)
        return mine

    def _each(self, way: Way) -> sa.Update:
        key = self._shape.key
        same = [column == sa.bindparam(f"g{i}", type_=column.type) for i, column in enumerate(key)]
        places = {name: (i, kind) for i, (name, kind) in enumerate(way.given, start=len(key))}

        def parameter(name: str) -> Any:
            place, kind = places[name]
            return sa.bindparam(f"g{place}", type_=kind)

        return sa.update(self._shape.table).where(*same).values(way.change(parameter))

    def lock(self, connection: sa.Connection, token: str, keys: Sequence[Key]) -> set[Key]:
        """Lock those of the keys that are ours and not locked by others."""
        mine: set[Key] = set()
        for some in chunks(keys):
            query = sa.select(*self._shape.key).where(self._rows.among(some), self._rows.ours(token))
            mine |= {tuple(row) for row in connection.execute(self._rows.locked(query))}
        return mine

    def _states(self, connection: sa.Connection, token: str, keys: Sequence[Key]) -> dict[Key, str]:
        """The states of those of the keys that still carry the token."""
        found: dict[Key, str] = {}
        for some in chunks(keys):
            carried = [self._rows.among(some), self._shape.claim == token]
            rows = connection.execute(sa.select(*self._shape.key, self._shape.status).where(*carried))
            found |= {tuple(row[:-1]): row[-1] for row in rows}
        return found

    @cached_property
    def _done(self) -> Way:
        """DONE with its result; the token stays, so that a repeated flush is recognised."""
        results = {name: self._shape.table.c[name] for name in self._shape.plan.result}
        given = tuple((f"result {name}", _given_type(column.type)) for name, column in results.items())

        def change(value: Callable[[str], Any]) -> dict[Any, Any]:
            told = {column: value(f"result {name}") for name, column in results.items()}
            done = {self._shape.status: State.DONE.value, self._shape.until: self._dialect.now}
            return {**told, **done, self._shape.error: sa.null()}

        return Way(given, change)

    @cached_property
    def _put(self) -> Way:
        """Put where the verdict says, with its error; charged or not."""
        given = (("state", sa.String()), ("charge", sa.Integer()), ("error", sa.Text()), ("wait", sa.Float()))

        def change(value: Callable[[str], Any]) -> dict[Any, Any]:
            state = value("state")
            if isinstance(self._shape.status.type, sa.Enum):
                state = sa.cast(state, self._shape.status.type)
            return {
                self._shape.status: state,
                self._shape.attempts: self._shape.attempts + value("charge"),
                self._shape.error: value("error"),
                self._shape.until: sa.type_coerce(self._dialect.after(value("wait")), Moment),
            }

        return Way(given, change)


def _put_values(verdict: Charged | Deferred | Failed) -> tuple[str, int, str, float]:
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


def _bound(row: Sequence[Any]) -> dict[str, Any]:
    return {f"g{i}": value for i, value in enumerate(row)}
