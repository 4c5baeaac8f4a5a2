"""Sweeping and giving back: records return to PENDING, as suspects, charged, or as if never claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from .base import Key, State, Swept
from .keys import unpack
from .ledger import ALONE, SUSPECT, Kind, ledger
from .notes import Notes
from .rows import CHUNK, Rows, chunks

DIED = "the process that worked it died"
"""The error of a record that was charged for the death of its process."""

_CLAIMS = (Kind.CLAIM.value, Kind.TORN.value)


class Sweeping:
    """The statements that undo claims on one shape."""

    def __init__(self, rows: Rows, notes: Notes) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect
        self._notes = notes

    def expired(self, connection: sa.Connection) -> list[str]:
        """The tokens of claims that ran out."""
        return list(connection.execute(sa.select(ledger.c.token).where(self._ran_out)).scalars())

    def sweep(self, connection: sa.Connection, token: str, attempts: int, wait: float) -> Swept:
        """Put back what one claim that ran out has left; nothing if it was renewed or is swept elsewhere."""
        claim = self._entry(connection, token, self._ran_out)
        if claim is None:
            return Swept()
        among = [self._rows.spanned(unpack(claim)), self._rows.ours(token)]
        keys = self._locked(connection, among)
        swept = self._put_back(connection, keys, attempts, wait, alone=token.startswith(ALONE))
        busy = self._count(connection, among)
        self._tear(connection, token) if busy else self._strike(connection, token)
        return replace(swept, busy=busy)

    def sweep_stray(self, connection: sa.Connection, floor: Key | None) -> tuple[Swept, Key | None]:
        """Put back some rows in flight whose claim the ledger does not know: of a restored backup, say."""
        known = sa.select(ledger.c.token).where(ledger.c.record == self._shape.record)
        claim = self._shape.claim
        stray = [
            self._shape.status == State.IN_FLIGHT.value,
            sa.or_(claim.is_(None), claim.not_in(known)),
            sa.or_(self._shape.until.is_(None), self._shape.until <= self._dialect.now),
        ]
        if floor is not None:
            stray.append(self._rows.above(floor))
        keys = self._locked(connection, stray, CHUNK)
        swept = self._put_back(connection, keys, 1, 0.0, alone=False)
        return swept, keys[-1] if len(keys) == CHUNK else None

    def give_back(
        self, connection: sa.Connection, token: str, keys: Sequence[Key] | None, *, last: bool
    ) -> int:
        """PENDING as before the claim; suspects stay suspects, and others learn that it lies behind them."""
        given = self._all_of(connection, token) if keys is None else keys
        mine = [key for some in chunks(given) for key in self._locked(connection, self._of(token, some))]
        alone = token.startswith(ALONE)
        before = {self._shape.claim: SUSPECT if alone else sa.null(), self._shape.until: sa.null()}
        self._change(connection, mine, {self._shape.status: State.PENDING.value, **before})
        if alone:
            self._notes.suspects(connection, mine)
        elif mine:
            self._notes.floor(connection, mine[0])
        busy = sum(self._count(connection, self._of(token, some)) for some in chunks(given))
        if (last or keys is None) and not busy:  # what is locked is left to the sweep
            self._strike(connection, token)
        return len(mine)

    def prune(self, connection: sa.Connection) -> None:
        """Drop the notes that everybody has read."""
        self._notes.prune(connection)

    def _put_back(
        self, connection: sa.Connection, keys: Sequence[Key], attempts: int, wait: float, *, alone: bool
    ) -> Swept:
        if not alone:
            self._change(connection, keys, self._pending(0.0))
            self._notes.suspects(connection, keys)
            return Swept(suspected=len(keys))
        spent = [key for some in chunks(keys) for key in self._spent(connection, some, attempts)]
        left = [key for key in keys if key not in set(spent)]
        charge = {self._shape.attempts: self._shape.attempts + 1, self._shape.error: DIED}
        self._change(
            connection,
            spent,
            {self._shape.status: State.FAILED.value, self._shape.until: self._dialect.now, **charge},
        )
        self._change(connection, left, self._pending(wait) | charge)
        self._notes.suspects(connection, left)
        return Swept(charged=len(left), failed=len(spent))

    def _pending(self, wait: float) -> dict[Any, Any]:
        until = self._dialect.after(wait) if wait > 0 else sa.null()
        return {
            self._shape.status: State.PENDING.value,
            self._shape.claim: SUSPECT,
            self._shape.until: until,
        }

    def _spent(self, connection: sa.Connection, keys: Sequence[Key], attempts: int) -> list[Key]:
        """Those that have no attempt left after this one."""
        last = self._shape.attempts + 1 >= attempts
        query = sa.select(*self._shape.key).where(self._rows.among(keys), last)
        return [tuple(row) for row in connection.execute(query)]

    def _locked(
        self,
        connection: sa.Connection,
        conditions: Sequence[sa.ColumnElement[bool]],
        limit: int | None = None,
    ) -> list[Key]:
        query = self._rows.locked(sa.select(*self._shape.key).where(*conditions))
        return [tuple(row) for row in connection.execute(query.limit(limit))]

    def _change(self, connection: sa.Connection, keys: Sequence[Key], values: dict[Any, Any]) -> None:
        for some in chunks(keys):
            connection.execute(self._rows.update().where(self._rows.among(some)).values(values))

    def _count(self, connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]) -> int:
        query = sa.select(sa.func.count()).select_from(self._shape.table).where(*conditions)
        return connection.execute(query).scalar_one()

    def _of(self, token: str, keys: Sequence[Key]) -> list[sa.ColumnElement[bool]]:
        return [self._rows.among(keys), self._rows.ours(token)]

    def _all_of(self, connection: sa.Connection, token: str) -> list[Key]:
        """The keys of a claim that are still in flight."""
        claim = self._entry(connection, token, sa.true())
        if claim is None:
            return []
        among = [self._rows.spanned(unpack(claim)), self._rows.ours(token)]
        query = sa.select(*self._shape.key).where(*among)
        return [tuple(row) for row in connection.execute(query)]

    def _entry(self, connection: sa.Connection, token: str, condition: sa.ColumnElement[bool]) -> str | None:
        """A claim's lowest and highest key, its row locked."""
        query = sa.select(ledger.c["keys"]).where(self._mine, ledger.c.token == token, condition)
        if self._dialect.locks_rows:
            query = query.with_for_update(skip_locked=True)
        return connection.execute(query).scalar()

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        return ledger.c.record == self._shape.record

    @property
    def _ran_out(self) -> sa.ColumnElement[bool]:
        return self._mine & ledger.c.kind.in_(_CLAIMS) & (ledger.c.until <= self._dialect.now)

    def _tear(self, connection: sa.Connection, token: str) -> None:
        """Nobody may renew what is half swept."""
        torn = sa.update(ledger).where(self._mine, ledger.c.token == token)
        connection.execute(torn.values(kind=Kind.TORN.value))

    def _strike(self, connection: sa.Connection, token: str) -> None:
        connection.execute(sa.delete(ledger).where(self._mine, ledger.c.token == token))
