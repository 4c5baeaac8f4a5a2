"""Claims: PENDING rows become IN_FLIGHT under a token, and the ledger learns of it, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.result import SimpleResultMetaData

from .base import Batch, Key, Record, State
from .byrow import ByRow
from .database import Database, Prepared
from .handed import Handed
from .keys import pack, unpack
from .ledger import ALONE, Kind, ledger
from .rows import Rows, chunks, named


@dataclass(frozen=True)
class Wish:
    """What somebody wants to claim: under which token, how many, for how long."""

    token: str
    owner: str
    ttl: float
    size: int

    @property
    def values(self) -> dict[str, Any]:
        """All of it, as parameters."""
        return {"token": self.token, "owner": self.owner, "ttl": self.ttl, "size": self.size}

    @property
    def flip(self) -> dict[str, Any]:
        """What a change of the rows needs of it."""
        return {"token": self.token, "ttl": self.ttl}


class Claiming:
    """The claims on one shape."""

    def __init__(self, rows: Rows, database: Database) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect
        self._database = database
        self._statements = cache(self._claim_above)

    def claim(self, token: str, owner: str, limit: int, ttl: float, floor: Key | None) -> Batch:
        """The next PENDING rows above the floor."""
        claim = Wish(token, owner, ttl, limit)
        statement, bounds = self._statements(floor is not None), named(floor or (), "floor")
        if self._dialect.takes_arrays:
            found = self.records(self._database.at_once(statement, claim.values | bounds))
        else:
            found = self._database.atomically(
                lambda connection: self._take(connection, statement.statement, claim, bounds)
            )
        return Batch(token, found, exhausted=len(found) < limit)

    def claim_suspect(self, token: str, owner: str, ttl: float) -> Batch:
        """One suspect; notes of suspects that are none any more are dropped on the way."""
        claim = Wish(ALONE + token, owner, ttl, 1)
        found = self._database.atomically(lambda connection: self._take_suspect(connection, claim))
        return Batch(claim.token, found, exhausted=not found, alone=True)

    def claim_these(self, token: str, owner: str, keys: Sequence[Key], ttl: float) -> Batch:
        """The rows of these keys that are claimable, in the order of the table."""
        claim = Wish(token, owner, ttl, len(keys))
        if not keys:
            return Batch(token, (), exhausted=True)
        wanted = [self._rows.among(keys), self._rows.pending, self._rows.unsuspected, self._rows.ready]
        statement = self._flipped([*wanted, self._rows.record])
        found = self._database.atomically(lambda connection: self._take(connection, statement, claim, {}))
        return Batch(token, found, exhausted=len(found) < len(keys))

    @property
    def text(self) -> str:
        """The statement that finds and locks the rows of a claim, or on PostgreSQL claims them."""
        return str(self._statements(True).statement.compile(dialect=self._database.engine.dialect))

    def records(self, rows: Sequence[Any]) -> Sequence[Record]:
        """Records from rows of what is wanted."""
        return Handed(rows, self._layout, self._key_places) if rows else ()

    def wanted(self, users: sa.FromClause) -> list[sa.ColumnElement[Any]]:
        """What is read of a row: the user's columns, from there, and, last, the attempts."""
        return [*(users.c[column.name] for column in self._shape.columns), self._shape.attempts]

    @property
    def _told(self) -> list[Any]:
        """What the table that keeps the states tells of the rows of a claim."""
        return self.wanted(self._shape.table)

    @cached_property
    def _key_places(self) -> list[int]:
        return [self._shape.columns.index(column) for column in self._shape.key]

    @cached_property
    def _layout(self) -> SimpleResultMetaData:
        return SimpleResultMetaData([column.name for column in self._shape.columns])

    def _take(
        self, connection: sa.Connection, statement: sa.Select[Any], claim: Wish, bounds: dict[str, Any]
    ) -> Sequence[Record]:
        """Lock the rows, flip them by their keys, enter the claim."""
        rows: Sequence[Any] = connection.execute(statement, claim.values | bounds).all()
        if rows and not self._dialect.takes_arrays:
            rows = self._flipped_rows(connection, rows, claim)
            self._enter(connection, self._keys_of(rows), claim)
        return self.records(rows)

    def _keys_of(self, rows: Sequence[Any]) -> list[Key]:
        """Their keys, without making records of them yet."""
        return [*zip(*([row[i] for row in rows] for i in self._key_places), strict=True)]

    def _flipped_rows(self, connection: sa.Connection, rows: Sequence[Any], claim: Wish) -> Sequence[Any]:
        self._flip(connection, self._keys_of(rows), claim)
        return rows

    def _enter(self, connection: sa.Connection, keys: Sequence[Key], claim: Wish) -> None:
        if keys:
            ends = {"keys": pack([keys[0], keys[-1]]), "size": len(keys)}
            connection.execute(self._entry, claim.values | ends)

    def _flip(self, connection: sa.Connection, keys: Sequence[Key], claim: Wish) -> None:
        """Locked already, so only named by their keys."""
        if not self._dialect.locks_rows:
            self._flip_one.run(connection, [*zip(*keys, strict=True)], claim.flip)
            return
        for some in chunks(keys):
            change = self._rows.update().where(self._rows.among(some)).values(self._in_flight)
            connection.execute(change, claim.flip)

    @cached_property
    def _flip_one(self) -> ByRow:
        same = [
            column == sa.bindparam(f"g{i}", type_=column.type) for i, column in enumerate(self._shape.key)
        ]
        change = self._rows.update().where(*same).values(self._in_flight)
        return ByRow(change, self._shape.until, self._end)

    def _claim_above(self, floored: bool) -> Prepared:
        rows = self._rows
        claimable = [rows.pending, rows.unsuspected, rows.ready, rows.record]
        if floored:
            claimable.append(rows.above(rows.values("floor")))
        return Prepared(self._flipped(claimable))

    def _flipped(self, claimable: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
        """The rows to claim; on PostgreSQL, where one statement can do all, claimed and entered already."""
        # A LIMIT the planner does not see spoils its plan; the express form has it in the text in any case.
        size = sa.bindparam("size", type_=sa.Integer, literal_execute=not self._dialect.express)
        if not self._dialect.takes_arrays:
            return self._rows.locked(sa.select(*self._told).where(*claimable)).limit(size)
        picked = self._rows.locked(sa.select(*self._shape.key).where(*claimable)).limit(size).cte("picked")
        mine = [column == picked.c[column.name] for column in self._shape.key]
        change = self._rows.update().where(*mine).values(self._in_flight).returning(*self._told)
        claimed = change.cte("claimed")
        order = [claimed.c[column.name] for column in self._shape.key]
        return self._read(claimed).order_by(*order).add_cte(self._entry_of(claimed, order))

    def _read(self, claimed: sa.CTE) -> sa.Select[Any]:
        return sa.select(claimed)

    @property
    def _in_flight(self) -> dict[sa.Column[Any], Any]:
        return {
            self._shape.status: State.IN_FLIGHT.value,
            self._shape.claim: sa.bindparam("token", type_=sa.String),
            self._shape.until: self._end,
        }

    @property
    def _end(self) -> sa.ColumnElement[Any]:
        return self._dialect.after(sa.bindparam("ttl", type_=sa.Float))

    @cached_property
    def _entry(self) -> sa.Insert:
        """The claim in the ledger, between these keys."""
        told: dict[str, Any] = {name: sa.bindparam(name) for name in ("token", "owner", "size", "keys")}
        row = {"record": self._shape.record, "kind": Kind.CLAIM.value, "until": self._end}
        return sa.insert(ledger).values(**row, **told)

    def _entry_of(self, claimed: sa.CTE, order: Sequence[sa.ColumnElement[Any]]) -> sa.CTE:
        """The same, from the rows claimed in the same statement; PostgreSQL writes the keys as texts."""
        low = _first_as_text(sa.select(*order).order_by(*order))
        high = _first_as_text(sa.select(*order).order_by(*(column.desc() for column in order)))
        row = {
            "record": sa.literal(self._shape.record),
            "token": sa.bindparam("token", type_=sa.String),
            "kind": sa.literal(Kind.CLAIM.value),
            "owner": sa.bindparam("owner", type_=sa.String),
            "size": sa.select(sa.func.count()).select_from(claimed).scalar_subquery(),
            "until": self._end,
            "keys": sa.cast(sa.func.json_build_array(low, high), sa.Text),
        }
        some = sa.exists(sa.select(sa.literal(1)).select_from(claimed))
        return sa.insert(ledger).from_select(list(row), sa.select(*row.values()).where(some)).cte("entered")

    def _take_suspect(self, connection: sa.Connection, claim: Wish) -> Sequence[Record]:
        rows = self._rows
        for note, packed in connection.execute(self._noted_suspects).all():
            keys = unpack(packed)
            claimable = [rows.among(keys), rows.pending, rows.suspect, rows.ready, rows.record]
            found = self._take(connection, self._flipped(claimable), claim, {})
            if found:
                return found
            self._drop_note(connection, note, keys)
        return ()

    def _drop_note(self, connection: sa.Connection, note: str, keys: Sequence[Key]) -> None:
        """Drop a note once none of its keys is PENDING and suspect; one that waits or is locked keeps it."""
        self._forget_vanished(connection, keys)
        still = sa.select(sa.literal(1)).where(self._rows.among(keys), self._rows.pending, self._rows.suspect)
        if connection.execute(still.limit(1)).first() is None:
            connection.execute(
                sa.delete(ledger).where(ledger.c.record == self._shape.record, ledger.c.token == note)
            )

    def _forget_vanished(self, connection: sa.Connection, keys: Sequence[Key]) -> None:
        """Suspects that are no records any more: should they come back, they are claimed like any other."""
        gone = sa.not_(sa.func.coalesce(self._rows.record, sa.false()))
        vanished = [self._rows.among(keys), self._rows.pending, self._rows.suspect, gone]
        connection.execute(self._rows.update().where(*vanished).values({self._shape.claim: sa.null()}))

    @cached_property
    def _noted_suspects(self) -> sa.Select[Any]:
        mine = (ledger.c.record == self._shape.record) & (ledger.c.kind == Kind.SUSPECTS.value)
        return sa.select(ledger.c.token, ledger.c["keys"]).where(mine).order_by(ledger.c.token)


def _first_as_text(keys: sa.Select[Any]) -> sa.ScalarSelect[Any]:
    first = keys.limit(1).subquery()
    return sa.select(
        sa.func.json_build_array(*(sa.cast(column, sa.Text) for column in first.c))
    ).scalar_subquery()
