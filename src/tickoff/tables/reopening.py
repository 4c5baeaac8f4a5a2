"""Retrying and reopening: FAILED or DONE rows become PENDING again, in short transactions along the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ..errors import ConfigError
from .base import Key, State
from .notes import Notes
from .rows import CHUNK, Rows


class Reopening:
    """The statements that make finished rows PENDING on one shape."""

    def __init__(self, rows: Rows, notes: Notes) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._notes = notes

    def failed(self, error_like: str | None) -> list[sa.ColumnElement[bool]]:
        """FAILED, with an error that is LIKE this."""
        like = [] if error_like is None else [self._shape.error.like(error_like)]
        return [self._shape.status == State.FAILED.value, self._rows.record, *like]

    def done(
        self, where: sa.ColumnElement[bool], finished_before: Any, *, changed: bool
    ) -> list[sa.ColumnElement[bool]]:
        """DONE before an instant, where the user says."""
        before = [] if finished_before is None else [self._shape.until < finished_before]
        differs = [self._changed] if changed else []
        users = self._rows.users_row(sa.and_(self._rows.of_users, where, *differs))
        return [self._shape.status == State.DONE.value, users, *before]

    @property
    def _changed(self) -> sa.ColumnElement[bool]:
        if self._shape.fingerprint is None:
            raise ConfigError(
                f"changed: {self._shape.plan.table} keeps its states itself, and nothing tells which rows "
                "were changed; name them by a condition, or keep the states in a companion (companion=True)"
            )
        return self._rows.changed

    def some(
        self, connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]], floor: Key | None
    ) -> list[Key]:
        """Make the next rows above the floor PENDING, as if they had never been tried."""
        above = [] if floor is None else [self._rows.above(floor)]
        query = sa.select(*self._shape.key).where(*conditions, *above).limit(CHUNK)
        keys = [tuple(row) for row in connection.execute(self._rows.locked(query, wait=True))]
        if keys:
            connection.execute(self._rows.update().where(self._rows.among(keys)).values(self._afresh))
            if floor is None:
                self._notes.floor(connection, keys[0])
        return keys

    @property
    def _afresh(self) -> dict[Any, Any]:
        blank = dict.fromkeys((self._shape.claim, self._shape.until, self._shape.error), sa.null())
        return {self._shape.status: State.PENDING.value, self._shape.attempts: 0, **blank}
