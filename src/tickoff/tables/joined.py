"""MySQL and MariaDB: many rows by one UPDATE, joined with their values as a table of literals.

Their drivers run `execute` with a list as one trip per row. Here the statement is built and compiled once for
16, 32, 64, … rows; a shorter list is filled up by repeating its last row, which changes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from .rows import Rows

_SMALLEST = 16

Build = Callable[[sa.Subquery, sa.Update], sa.Update]
"""The update in full, given a table with the columns g0, g1, … of values, and its beginning."""


class Joined:
    """One kind of update, for any number of rows."""

    def __init__(self, kinds: Sequence[Any], rows: Rows, build: Build) -> None:
        self._kinds = kinds
        self._rows = rows
        self._key = rows.key
        self._build = build
        self._compiled = cache(self._compile)

    def run(self, connection: sa.Connection, rows: Sequence[Sequence[Any]], values: dict[str, Any]) -> None:
        """Update the rows with these values beside each."""
        size = max(_SMALLEST, 1 << (len(rows) - 1).bit_length())
        filled = [*rows, *[rows[-1]] * (size - len(rows))]
        cells = {f"v{r}_{c}": cell for r, row in enumerate(filled) for c, cell in enumerate(row)}
        self._compiled(size, connection.dialect).run(connection, cells | values)

    def _compile(self, size: int, dialect: sa.Dialect) -> _Compiled:
        table = self._rows.shape.table
        statement = self._build(self._literals(size).subquery("given"), sa.update(table))
        compiled: Any = statement.compile(dialect=dialect)
        senders = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for bind, name in compiled.bind_names.items()
        }
        return _Compiled(compiled, self._ordered(compiled.string, dialect), senders)

    def _ordered(self, text: str, dialect: sa.Dialect) -> str:
        """The values first, each with a look into the index: a scan would wait for rows that others hold."""
        table = dialect.identifier_preparer.format_table(self._rows.shape.table)
        values_first = text.replace(f"UPDATE {table}, (", "UPDATE (", 1)
        return values_first.replace(
            ") AS given SET ", f") AS given STRAIGHT_JOIN {table} {self._rows.hint} SET ", 1
        )

    def _literals(self, size: int) -> sa.CompoundSelect[Any]:
        """The rows of values below none of the table's own, which lends them its types and collations."""
        lent = [*self._key, *(sa.null() for _ in self._kinds[len(self._key) :])]
        head = sa.select(*(column.label(f"g{c}") for c, column in enumerate(lent))).where(sa.false())
        rows = [sa.select(*(self._cell(r, c) for c in range(len(self._kinds)))) for r in range(size)]
        return sa.union_all(head, *rows)

    def _cell(self, row: int, column: int) -> sa.BindParameter[Any]:
        return sa.bindparam(f"v{row}_{column}", type_=self._kinds[column])


@dataclass(frozen=True)
class _Compiled:
    compiled: Any
    text: str
    senders: dict[str, Any]

    def run(self, connection: sa.Connection, values: dict[str, Any]) -> None:
        raw = self.compiled.construct_params(values, escape_names=False)
        sent = {name: send(raw[name]) if send else raw[name] for name, send in self.senders.items()}
        if self.compiled.positional:
            connection.exec_driver_sql(self.text, tuple(sent[name] for name in self.compiled.positiontup))
        else:
            escaped = self.compiled.escaped_bind_names
            connection.exec_driver_sql(self.text, {escaped.get(name, name): v for name, v in sent.items()})
