"""Claims: PENDING rows become IN_FLIGHT under a token, and the ledger learns of it, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData

from .base import Batch, Key, Record, State
from .keys import pack, unpack
from .ledger import ALONE, Kind, ledger
from .rows import Rows, chunks, named


class Claiming:
    """The statements of claims on one shape."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect
        self._floored = cache(self._claim_above)

    def claim(
        self, connection: sa.Connection, token: str, owner: str, limit: int, ttl: float, floor: Key | None
    ) -> Batch:
        """The next PENDING rows above the floor."""
        bound = {"token": token, "ttl": ttl, "size": limit} | named(floor or (), "floor")
        found = self._take(connection, self._floored(floor is not None), bound)
        self._enter(connection, token, owner, ttl, [record.key for record in found])
        return Batch(token, found, exhausted=len(found) < limit)

    def claim_suspect(self, connection: sa.Connection, token: str, owner: str, ttl: float) -> Batch:
        """One suspect; notes of suspects that are none any more are dropped on the way."""
        token = ALONE + token
        for note, keys in connection.execute(self._noted_suspects).all():
            found = self._take_suspect(connection, token, ttl, unpack(keys))
            if found:
                self._enter(connection, token, owner, ttl, [record.key for record in found])
                return Batch(token, found, exhausted=False, alone=True)
            self._drop_note(connection, note, unpack(keys))
        return Batch(token, (), exhausted=True, alone=True)

    def records(self, rows: Sequence[Any]) -> tuple[Record, ...]:
        """Records from rows of the user's columns and, last, the attempts."""
        handed = self._handed([row[:-1] for row in rows])
        return tuple(
            Record(tuple(row[i] for i in self._key_places), mine, row[-1] or 0)
            for row, mine in zip(rows, handed, strict=True)
        )

    @property
    def wanted(self) -> list[sa.ColumnElement[Any]]:
        """What is read of a row: the user's columns and, last, the attempts."""
        return [*self._shape.columns, self._shape.attempts]

    @cached_property
    def _key_places(self) -> list[int]:
        return [self._shape.columns.index(column) for column in self._shape.key]

    @cached_property
    def _layout(self) -> SimpleResultMetaData:
        return SimpleResultMetaData([column.name for column in self._shape.columns])

    def _handed(self, rows: Sequence[Sequence[Any]]) -> Sequence[sa.Row[Any]]:
        """Rows with the user's columns only."""
        handed: IteratorResult[Any] = IteratorResult(self._layout, iter(rows))
        return handed.all()

    def _take(
        self, connection: sa.Connection, statement: sa.Select[Any], bound: dict[str, Any]
    ) -> tuple[Record, ...]:
        found = self.records(connection.execute(statement, bound).all())
        if found and not self._dialect.takes_arrays:
            for keys in chunks([record.key for record in found]):
                change = sa.update(self._shape.table).where(self._rows.among(keys)).values(self._in_flight)
                connection.execute(change, {"token": bound["token"], "ttl": bound["ttl"]})
        return found

    def _claim_above(self, floored: bool) -> sa.Select[Any]:
        rows = self._rows
        claimable = [rows.pending, rows.unsuspected, rows.ready, rows.record]
        if floored:
            claimable.append(rows.above(rows.values("floor")))
        return self._flipped(claimable)

    def _flipped(self, claimable: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
        """The rows to claim; on PostgreSQL, where one statement can, claimed already."""
        size = sa.bindparam("size", type_=sa.Integer, literal_execute=True)  # a LIMIT unknown spoils the plan
        if not self._dialect.takes_arrays:
            return self._rows.locked(sa.select(*self.wanted).where(*claimable)).limit(size)
        picked = self._rows.locked(sa.select(*self._shape.key).where(*claimable)).limit(size).cte("picked")
        mine = [column == picked.c[column.name] for column in self._shape.key]
        change = sa.update(self._shape.table).where(*mine).values(self._in_flight).returning(*self.wanted)
        claimed = change.cte("claimed")
        return sa.select(claimed).order_by(*(claimed.c[column.name] for column in self._shape.key))

    @property
    def _in_flight(self) -> dict[sa.Column[Any], Any]:
        end = self._dialect.after(sa.bindparam("ttl", type_=sa.Float))
        return {
            self._shape.status: State.IN_FLIGHT.value,
            self._shape.claim: sa.bindparam("token", type_=sa.String),
            self._shape.until: end,
        }

    def _enter(
        self, connection: sa.Connection, token: str, owner: str, ttl: float, keys: Sequence[Key]
    ) -> None:
        if keys:
            bounds = pack([keys[0], keys[-1]])
            row = {"token": token, "owner": owner, "size": len(keys), "keys": bounds, "ttl": ttl}
            connection.execute(self._entry, row)

    @cached_property
    def _entry(self) -> sa.Insert:
        end = self._dialect.after(sa.bindparam("ttl", type_=sa.Float))
        return sa.insert(ledger).values(
            record=self._shape.record,
            token=sa.bindparam("token"),
            kind=Kind.CLAIM.value,
            owner=sa.bindparam("owner"),
            size=sa.bindparam("size"),
            until=end,
            keys=sa.bindparam("keys"),
        )

    def _take_suspect(
        self, connection: sa.Connection, token: str, ttl: float, keys: Sequence[Key]
    ) -> tuple[Record, ...]:
        rows = self._rows
        claimable = [rows.among(keys), rows.pending, rows.suspect, rows.ready]
        return self._take(connection, self._flipped(claimable), {"token": token, "ttl": ttl, "size": 1})

    def _drop_note(self, connection: sa.Connection, note: str, keys: Sequence[Key]) -> None:
        """Drop a note once none of its keys is PENDING and suspect; one that waits or is locked keeps it."""
        still = sa.select(sa.literal(1)).where(self._rows.among(keys), self._rows.pending, self._rows.suspect)
        if connection.execute(still.limit(1)).first() is None:
            connection.execute(
                sa.delete(ledger).where(ledger.c.record == self._shape.record, ledger.c.token == note)
            )

    @cached_property
    def _noted_suspects(self) -> sa.Select[Any]:
        mine = (ledger.c.record == self._shape.record) & (ledger.c.kind == Kind.SUSPECTS.value)
        return sa.select(ledger.c.token, ledger.c["keys"]).where(mine).order_by(ledger.c.token)
