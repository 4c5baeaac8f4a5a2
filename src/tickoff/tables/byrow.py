"""SQLite: one UPDATE run for many rows, compiled once, its values handed to the driver as plain tuples.

`execute` with a list of dictionaries spends several times as long on its parameters as SQLite on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any

import sqlalchemy as sa

from .rows import Columns

_MOMENT = "moment"

Sender = Callable[[Any], Any]
"""Makes a value ready for the driver."""


class ByRow:
    """One kind of update, with the parameters g0, g1, … that differ from row to row.

    The moment it writes may be the same for all: then SQLite reckons it once, which takes half as long as
    the update of a row.
    """

    def __init__(self, statement: sa.Update, when: sa.Column[Any], moment: Any = None) -> None:
        told = {} if moment is None else {when: sa.bindparam(_MOMENT, type_=when.type)}
        self._statement = statement.values(told)
        self._moment = None if moment is None else sa.select(moment.label(_MOMENT))
        self._compiled = cache(self._compile)

    def run(self, connection: sa.Connection, columns: Columns, values: Mapping[str, Any]) -> int:
        """Update a row for each of the columns' entries, all with these values; how many were there."""
        compiled, senders = self._compiled(connection.dialect)
        if self._moment is not None:
            values = {**values, **connection.execute(self._moment, values).mappings().one()}
        given: dict[str, Sequence[Any]] = {f"g{i}": column for i, column in enumerate(columns)}
        first = {name: column[0] for name, column in given.items()}
        fixed = compiled.construct_params({**values, **first}, escape_names=False)
        sent = [_sent(given.get(n), fixed[n], senders[n]) for n in compiled.positiontup]
        return connection.exec_driver_sql(compiled.string, [*zip(*sent, strict=False)]).rowcount

    def _compile(self, dialect: sa.Dialect) -> tuple[Any, dict[str, Sender | None]]:
        compiled: Any = self._statement.compile(dialect=dialect)
        kinds = {name: bind.type.dialect_impl(dialect) for bind, name in compiled.bind_names.items()}
        return compiled, {name: kind.bind_processor(dialect) for name, kind in kinds.items()}


def _sent(column: Sequence[Any] | None, value: Any, send: Sender | None) -> Iterable[Any]:
    """The values of one parameter: a column's, or the same for all."""
    if column is None:
        return repeat(send(value) if send else value)
    return map(send, column) if send else column
