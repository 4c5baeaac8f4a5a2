"""New rows of a user's table get a record in its companion: PENDING, some thousand at a time, along the key.

Whether a row is new is seen by walking both tables side by side, from a floor. So a claim that finds enough
records looks for no rows, and one at the end of the table looks at what was added behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from .base import Key
from .dialects import WALKED_PLANS
from .rows import Rows, chunks

AT_ONCE = 5000
"""New rows that get a record in one transaction: some claims' worth."""


class Enrolling:
    """The statements that find new rows for one shape."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._shape = rows.shape
        self._dialect = rows.dialect

    def some(self, connection: sa.Connection, floor: Key | None) -> int:
        """The next new rows above the floor; how many got a record by us."""
        if self._dialect.name == "postgresql":
            connection.exec_driver_sql(WALKED_PLANS)
        above = [] if floor is None else [self._rows.above(floor, users=True)]
        known_above = [] if floor is None else [self._rows.above(floor)]
        return self._enrol(connection, self._new(known_above).where(*above).limit(AT_ONCE))

    def these(self, connection: sa.Connection, keys: Sequence[Key]) -> None:
        """The rows of these keys, those of them that are new."""
        for some in chunks(keys):
            self._enrol(connection, self._new([]).where(self._rows.among(some, users=True)))

    def _new(self, known: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
        """Rows without a record, in the order of their keys; where a record has to be looked for is known."""
        rows, shape = self._rows, self._shape
        record = sa.select(shape.key[0]).where(rows.together, *known).correlate(shape.users)
        new = sa.select(*shape.users_key).where(rows.of_users, ~record.exists()).order_by(*shape.users_key)
        return new.with_hint(shape.users, rows.users_hint, "*") if rows.users_hint else new

    def _enrol(self, connection: sa.Connection, new: sa.Select[Any]) -> int:
        names = [column.name for column in self._shape.key]
        return connection.execute(self._unless_there.from_select(names, new)).rowcount

    @cached_property
    def _unless_there(self) -> Any:
        """What another server enrolled at the same time is passed over."""
        match self._dialect.name:
            case "postgresql":
                return postgresql.insert(self._shape.table).on_conflict_do_nothing()
            case "sqlite":
                return sa.insert(self._shape.table).prefix_with("OR IGNORE")
            case _:
                return sa.insert(self._shape.table).prefix_with("IGNORE")
