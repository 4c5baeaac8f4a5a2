"""Which pass this is: a name that changes when rows are reopened, and with nothing else."""

from __future__ import annotations

import sqlalchemy as sa

from ..names import new_token
from .keys import pack
from .ledger import Kind, ledger
from .rows import Rows

_FOR_EVER = 86400.0 * 3650


class Passes:
    """The pass of one shape, noted in the ledger; before the first reopening it has no name."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._mine = (ledger.c.record == rows.shape.record) & (ledger.c.kind == Kind.REOPENED.value)

    def begin(self, connection: sa.Connection) -> None:
        """A new pass; committed before its first row is PENDING, so that whoever claims one knows of it."""
        connection.execute(sa.delete(ledger).where(self._mine))
        row = {"record": self._rows.shape.record, "kind": Kind.REOPENED.value, "owner": "", "size": 0}
        end = self._rows.dialect.after(_FOR_EVER)
        connection.execute(sa.insert(ledger).values(**row, token=new_token(), until=end, keys=pack([])))

    def name(self, connection: sa.Connection) -> str:
        """The name of the pass; of two that began at once, the later one's."""
        query = sa.select(ledger.c.token).where(self._mine)
        found = connection.execute(query.order_by(ledger.c.until.desc(), ledger.c.token).limit(1)).first()
        return "" if found is None else str(found[0])
