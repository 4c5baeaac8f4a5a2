"""Notes in the ledger that tell the other servers of suspects, and of rows made PENDING behind them."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from ..names import new_token
from .base import Key, News
from .keys import pack, unpack
from .ledger import Kind, ledger
from .rows import Rows, chunks

FLOOR_LIFE = 600.0
"""Seconds a lowered floor is told: workers ask every second, and wrap around in any case."""

_FOR_EVER = 86400.0 * 3650


class Notes:
    """The notes about one shape."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect

    def suspects(self, connection: sa.Connection, keys: Sequence[Key]) -> None:
        """Tell that these are to be claimed alone."""
        for some in chunks(keys):
            self._write(connection, Kind.SUSPECTS, some, _FOR_EVER)

    def floor(self, connection: sa.Connection, lowest: Key) -> None:
        """Tell that this key, and others above it, are PENDING again: the floor is the key before it."""
        before = sa.select(*self._shape.key).where(self._rows.below(lowest))
        down = [column.desc() for column in self._shape.key]
        found = connection.execute(before.order_by(*down).limit(1)).first()
        self._write(connection, Kind.FLOOR, [tuple(found)] if found else [], FLOOR_LIFE)

    def prune(self, connection: sa.Connection) -> None:
        """Drop floors that everybody has read."""
        old = (ledger.c.kind == Kind.FLOOR.value) & (ledger.c.until <= self._dialect.now)
        connection.execute(sa.delete(ledger).where(ledger.c.record == self._shape.record, old))

    def news(self, connection: sa.Connection, floor: Key | None, seen: frozenset[str]) -> News:
        """What is noted, and the lowest of the floors that were not seen before."""
        notes = ledger.c.kind.in_([Kind.SUSPECTS.value, Kind.FLOOR.value])
        query = sa.select(ledger.c.token, ledger.c.kind, ledger.c["keys"])
        mine = [ledger.c.record == self._shape.record, notes, ledger.c.until > self._dialect.now]
        rows = connection.execute(query.where(*mine)).all()
        floors = {token: unpack(keys) for token, kind, keys in rows if kind == Kind.FLOOR}
        unseen = [keys for token, keys in floors.items() if token not in seen]
        if unseen and floor is not None:
            floor = self._lowest(connection, [[floor], *unseen])
        return News(floor, frozenset(floors), any(kind == Kind.SUSPECTS for _, kind, _ in rows))

    def _lowest(self, connection: sa.Connection, floors: Sequence[Sequence[Key]]) -> Key | None:
        """Which of them comes first, by the table's own order; the very start if a row is gone since."""
        if not all(floors):
            return None
        keys = list({keys[0] for keys in floors})
        query = sa.select(*self._shape.key).where(self._rows.among(keys)).order_by(*self._shape.key)
        found = [tuple(row) for row in connection.execute(query)]
        return found[0] if len(found) == len(keys) else None

    def _write(self, connection: sa.Connection, kind: Kind, keys: Sequence[Key], life: float) -> None:
        row = {"record": self._shape.record, "token": new_token(), "kind": kind.value, "owner": ""}
        note = sa.insert(ledger).values(
            **row, size=len(keys), until=self._dialect.after(life), keys=pack(keys)
        )
        connection.execute(note)
