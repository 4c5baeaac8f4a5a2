"""Settling: verdicts become states, guarded by IN_FLIGHT and the claim's token, result and DONE together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

import sqlalchemy as sa

from .base import Charged, Deferred, Done, Failed, Key, Settled, State, Verdict
from .byrow import ByRow
from .database import Database, Prepared, RowsLocked
from .joined import Joined
from .ledger import ledger
from .rows import Columns, Rows, chunks
from .ways import Way, Ways, done, put, put_values


class Settling:
    """The statements of flushes on one shape."""

    def __init__(self, rows: Rows, database: Database) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect
        self._database = database
        self._done = done(self._shape, self._dialect)
        self._put = put(self._shape, self._dialect)

    def settle(self, token: str, verdicts: Sequence[Verdict], *, last: bool) -> Settled:
        """Write what is still ours; tell apart what was written before, what is locked and what is lost."""
        ways = self._sorted(verdicts)
        if self._dialect.takes_arrays and not any(way.unfit_for_arrays for way, _ in ways):
            written = self._all_at_once(token, ways, last=last)
        else:
            written = self._database.atomically(
                lambda connection: self._step_by_step(connection, token, ways, last=last)
            )
        if len(written) == len(verdicts):
            return Settled(written)
        rest = [verdict.key for verdict in verdicts if verdict.key not in written]
        return self._told(token, written, rest, last=last) if rest else Settled(written)

    def close(self, token: str) -> None:
        """Strike the claim off the ledger."""
        self._database.atomically(lambda connection: self.strike(connection, token))

    def strike(self, connection: sa.Connection, token: str) -> None:
        """The same, within a transaction."""
        connection.execute(self._strike, {"token": token})

    @cached_property
    def _strike(self) -> sa.Delete:
        mine = (ledger.c.record == self._shape.record) & (ledger.c.token == sa.bindparam("token"))
        return sa.delete(ledger).where(mine)

    def _told(self, token: str, written: frozenset[Key], rest: Sequence[Key], *, last: bool) -> Settled:
        """What became of those that were not written now."""
        states = self._database.read(lambda connection: self._states(connection, token, rest))
        busy = frozenset(key for key, state in states.items() if state == State.IN_FLIGHT)
        if last and not busy:
            self.close(token)
        return Settled(written | (states.keys() - busy), frozenset(rest) - states.keys(), busy)

    def _all_at_once(self, token: str, ways: Ways, *, last: bool) -> frozenset[Key]:
        """Each way by one statement; the last one strikes the claim off if all there is was written."""
        written: frozenset[Key] = frozenset()
        missing = 0
        for place, (way, columns) in enumerate(ways, start=1):
            closing, size = last and place == len(ways) and not missing, len(columns[0])
            bound = {f"g{i}": column for i, column in enumerate(columns)}
            if self._flush(way, bound | {"token": token, "expected": size if closing else -1}) == size:
                written |= frozenset(self._keys(columns))
            else:
                missing += 1  # which ones is found out by asking
        return written

    def _step_by_step(
        self, connection: sa.Connection, token: str, ways: Ways, *, last: bool
    ) -> frozenset[Key]:
        written: set[Key] = set()
        for way, columns in ways:
            written |= self._one_by_one(connection, way, token, columns)
        if last and len(written) == sum(len(columns[0]) for _, columns in ways):
            self.strike(connection, token)
        return frozenset(written)

    def _sorted(self, verdicts: Sequence[Verdict]) -> Ways:
        worked, others = _parted(verdicts)
        ways: Ways = []
        if worked:
            keys, values = zip(*worked, strict=True)
            results = ([told.get(name) for told in values] for name in self._shape.plan.result)
            ways.append((self._done, [*_transposed(keys), *results]))
        if others:
            ways.append((self._put, _transposed([(*v.key, *put_values(v)) for v in others])))
        return ways

    def _keys(self, columns: Columns) -> list[Key]:
        return [*zip(*columns[: len(self._shape.key)], strict=True)]

    def _flush(self, way: Way, bound: dict[str, Any]) -> int:
        """Hope that nobody holds one of the rows; where somebody does, lock first what can be locked.

        Locking first writes every row twice. It is needed only where a user's transaction is in the way.
        """
        if self._dialect.express:
            with suppress(RowsLocked):
                return self._written(self._at_once(way, careful=False), bound, hasty=True)
        return self._written(self._at_once(way, careful=True), bound)

    def _written(self, statement: Prepared, bound: dict[str, Any], *, hasty: bool = False) -> int:
        """How many rows it wrote: to send all their keys back would cost a tenth of the flush."""
        ((count,),) = self._database.at_once(statement, bound, hasty=hasty)
        return int(count)

    def _at_once(self, way: Way, *, careful: bool) -> Prepared:
        """All rows by one statement, their values in arrays, in key order."""
        if (way.given, careful) not in self._built:
            self._built[way.given, careful] = Prepared(self._build_at_once(way, careful=careful))
        return self._built[way.given, careful]

    @cached_property
    def _built(self) -> dict[Any, Prepared]:
        return {}

    def _build_at_once(self, way: Way, *, careful: bool) -> sa.Select[Any]:
        fields = [(f"g{i}", kind) for i, kind in enumerate(self._kinds(way))]
        given = self._rows.given(fields, "given")
        mine = self._locked(given) if careful else self._sorted_by_key(given)
        change = self._update(way, list(mine.c), self._rows.update())
        settled = change.returning(sa.literal(1)).cte("settled")
        return sa.select(sa.func.count()).select_from(settled).add_cte(self._struck(settled))

    def _locked(self, given: sa.Select[Any]) -> sa.CTE:
        values = given.subquery("given")
        same = [column == values.c[f"g{i}"] for i, column in enumerate(self._shape.key)]
        ours = self._rows.ours(sa.bindparam("token", type_=sa.String))
        joined = sa.select(values).join(self._shape.table, sa.and_(*same))
        return self._rows.locked(joined.where(ours)).cte("mine")

    def _sorted_by_key(self, given: sa.Select[Any]) -> sa.Subquery:
        return given.order_by(*(sa.column(f"g{i}") for i in range(len(self._shape.key)))).subquery("mine")

    def _struck(self, settled: sa.CTE) -> sa.CTE:
        """The claim struck off, if as many were settled as expected."""
        all_of_it = sa.select(sa.func.count()).select_from(settled).scalar_subquery() == sa.bindparam(
            "expected"
        )
        return self._strike.where(all_of_it).cte("struck")

    def _one_by_one(self, connection: sa.Connection, way: Way, token: str, columns: Columns) -> set[Key]:
        if not self._dialect.locks_rows:  # the whole file is ours
            return self._all_ours(connection, way, token, columns)
        values, keys = [*zip(*columns, strict=True)], self._keys(columns)
        mine = self._lock(connection, token, keys)
        rows = [row for row, key in zip(values, keys, strict=True) if key in mine]
        for some in chunks(rows):
            if self._dialect.name == "mysql":
                self._joined(way).run(connection, some, {"token": token})
            else:
                connection.execute(self._each(way), _bound(some, token))
        return mine

    def _all_ours(self, connection: sa.Connection, way: Way, token: str, columns: Columns) -> set[Key]:
        """With nobody beside us, what could be written was; how many tells whether to ask which."""
        keys = self._keys(columns)
        if self._by_key(way).run(connection, columns, {"token": token}) == len(keys):
            return set(keys)
        return set(self._states(connection, token, keys))

    def _each(self, way: Way) -> sa.Update:
        """One row, with its values in parameters."""
        if way.given not in self._by_row:
            kinds = self._kinds(way)
            places = [sa.bindparam(f"g{i}", type_=kind) for i, kind in enumerate(kinds)]
            self._by_row[way.given] = self._update(way, places, self._rows.update())
        return self._by_row[way.given]

    def _by_key(self, way: Way) -> ByRow:
        """The same for many rows in turn, compiled once."""
        if way.given not in self._by_keys:
            self._by_keys[way.given] = ByRow(self._each(way), self._shape.until, way.moment)
        return self._by_keys[way.given]

    def _joined(self, way: Way) -> Joined:
        """Many rows, joined with their values."""
        if way.given not in self._by_join:
            kinds = self._kinds(way)
            self._by_join[way.given] = Joined(
                kinds, self._rows, lambda given, update: self._update(way, list(given.c), update)
            )
        return self._by_join[way.given]

    @cached_property
    def _by_row(self) -> dict[Any, sa.Update]:
        return {}

    @cached_property
    def _by_keys(self) -> dict[Any, ByRow]:
        return {}

    @cached_property
    def _by_join(self) -> dict[Any, Joined]:
        return {}

    def _kinds(self, way: Way) -> list[Any]:
        return [*(column.type for column in self._shape.key), *(kind for _, kind in way.given)]

    def _update(self, way: Way, places: Sequence[Any], change: sa.Update) -> sa.Update:
        """The update of the rows whose key is in the first places, from the values in the others."""
        key, width = self._shape.key, len(self._shape.key)
        same = [column == place for column, place in zip(key, places[:width], strict=True)]
        values = way.change(lambda name: places[width + way.names.index(name)])
        ours = self._rows.ours(sa.bindparam("token", type_=sa.String))
        return change.where(*same, ours).values(values)

    def _lock(self, connection: sa.Connection, token: str, keys: Sequence[Key]) -> set[Key]:
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


def _parted(verdicts: Sequence[Verdict]) -> tuple[Sequence[Done], Sequence[Charged | Deferred | Failed]]:
    """Those that worked, and the others; mostly there are none, which is quickly said."""
    if set(map(type, verdicts)) == {Done}:
        return cast("Sequence[Done]", verdicts), ()
    worked = [verdict for verdict in verdicts if isinstance(verdict, Done)]
    return worked, [verdict for verdict in verdicts if not isinstance(verdict, Done)]


def _transposed(rows: Sequence[Sequence[Any]]) -> Columns:
    return [list(column) for column in zip(*rows, strict=True)]


def _bound(rows: Sequence[Sequence[Any]], token: str) -> list[dict[str, Any]]:
    return [{"token": token} | {f"g{i}": value for i, value in enumerate(row)} for row in rows]
