"""Claims where the states are in a companion: the same steps, with the user's rows read beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import sqlalchemy as sa

from .base import Batch, Key, State
from .claiming import Claiming, Wish
from .database import Database
from .enrolling import Enrolling
from .ledger import ALONE, SUSPECT
from .rows import Rows, chunks


class ClaimingBeside(Claiming):
    """The claims on one shape with a companion."""

    def __init__(self, rows: Rows, database: Database) -> None:
        super().__init__(rows, database)
        self._enrolling = Enrolling(rows)

    def claim(self, token: str, owner: str, limit: int, ttl: float, floor: Key | None) -> Batch:
        """The next PENDING rows above the floor, after new ones got their record.

        Those are looked for from the beginning, and above the floor once all records there are claimed.
        """
        if floor is None:
            self._enrol(None)
        batch = super().claim(token, owner, limit, ttl, floor)
        if floor is None or not batch.exhausted or not self._enrol(floor):
            return batch
        return (
            replace(batch, exhausted=False)
            if batch.records
            else super().claim(token, owner, limit, ttl, floor)
        )

    def claim_these(self, token: str, owner: str, keys: Sequence[Key], ttl: float) -> Batch:
        """The rows of these keys that are claimable, in the order of the table."""
        self._database.atomically(partial(self._enrolling.these, keys=keys))
        return super().claim_these(token, owner, keys, ttl)

    def wanted(self, users: sa.FromClause) -> list[sa.ColumnElement[Any]]:
        """What is read of a row that may have no record yet: its key comes from the user's table then."""
        return self._wanted([users.c[key.name] for key in self._shape.users_key], self._shape.attempts, users)

    def _wanted(self, key: Sequence[Any], attempts: Any, users: sa.FromClause) -> list[sa.ColumnElement[Any]]:
        """The user's columns, the record's own key, the attempts."""
        columns = [users.c[column.name] for column in self._shape.columns]
        labelled = [column.label(f"key {i}") for i, column in enumerate(key)]
        return [*columns, *labelled, sa.func.coalesce(attempts, sa.literal_column("0"))]

    @cached_property
    def _key_places(self) -> list[int]:
        """Beside the user's: by a collation, the two may be equal and written otherwise."""
        width = len(self._shape.columns)
        return [*range(width, width + len(self._shape.key))]

    @property
    def _told(self) -> list[Any]:
        return [*self._shape.key, self._shape.attempts]

    def _read(self, claimed: sa.CTE) -> sa.Select[Any]:
        """PostgreSQL, which claims and reads in one statement, and so at one instant."""
        key = [claimed.c[column.name] for column in self._shape.key]
        same = [users == ours for users, ours in zip(self._shape.users_key, key, strict=True)]
        wanted = self._wanted(key, claimed.c[self._shape.attempts.name], self._shape.users)
        return sa.select(*wanted).select_from(claimed.join(self._shape.users, sa.and_(*same)))

    @property
    def _in_flight(self) -> dict[sa.Column[Any], Any]:
        """With the fingerprint of the user's row, by which it is told whether that changes."""
        changes = super()._in_flight
        if self._shape.fingerprint is not None:
            changes[self._shape.fingerprint] = self._rows.in_users(self._rows.fingerprint)
        return changes

    def _flipped_rows(self, connection: sa.Connection, rows: Sequence[Any], claim: Wish) -> Sequence[Any]:
        """The other databases flip first, and then read the users' rows as they were when that was done."""
        keys = [tuple(row[:-1]) for row in rows]
        self._flip(connection, keys, claim)
        found = [row for some in chunks(keys) for row in self._unchanged(connection, some)]
        if len(found) < len(keys):
            taken = set(self._keys_of(found))
            self._let_go(connection, [key for key in keys if key not in taken], claim)
        return found

    def _unchanged(self, connection: sa.Connection, keys: Sequence[Key]) -> Sequence[Any]:
        """The users' rows of these keys, but for those that were changed or removed in the meantime."""
        shape = self._shape
        wanted = self._wanted(shape.key, shape.attempts, shape.users)
        query = sa.select(*wanted).select_from(shape.table.join(shape.users, self._rows.together))
        same = [self._rows.among(keys), sa.not_(self._rows.changed)]
        return connection.execute(query.where(*same).order_by(*shape.key)).all()

    def _let_go(self, connection: sa.Connection, keys: Sequence[Key], claim: Wish) -> None:
        """PENDING as before: the next claim sees what became of the users' rows."""
        before = {
            self._shape.status: State.PENDING.value,
            self._shape.claim: SUSPECT if claim.token.startswith(ALONE) else sa.null(),
            self._shape.until: sa.null(),
        }
        for some in chunks(keys):
            connection.execute(self._rows.update().where(self._rows.among(some)).values(before))

    def _enrol(self, floor: Key | None) -> int:
        return self._database.atomically(partial(self._enrolling.some, floor=floor))
