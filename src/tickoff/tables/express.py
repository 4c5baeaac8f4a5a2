"""PostgreSQL by psycopg in one round trip: the settings of the plan, the statement, and the commit.

A flush of a few hundred records takes the server a few milliseconds; BEGIN, SET LOCAL and COMMIT as trips of
their own would add half of that. Several statements in one message are one transaction, with no trip between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .dialects import KEYED_PLANS

_HASTE = "SET LOCAL lock_timeout = '50ms'; "


@dataclass(frozen=True)
class Express:
    """A statement, compiled once."""

    compiled: Any
    text: str
    sending: Mapping[str, Any]
    """By parameter, what turns a value into one the driver takes."""
    kinds: tuple[Any, ...]
    """The types of the columns."""
    dialect: sa.Dialect

    @classmethod
    def of(cls, statement: sa.Select[Any], dialect: sa.Dialect) -> Express:
        """Compile a statement for the engine's dialect."""
        compiled: Any = statement.compile(dialect=dialect)
        sending = {name: _sender(bind.type, dialect) for bind, name in compiled.bind_names.items()}
        kinds = tuple(column.type for column in statement.selected_columns)
        return cls(compiled, f"{KEYED_PLANS}; {compiled.string}", sending, kinds, dialect)

    def run(
        self, connection: sa.Connection, values: Mapping[str, Any], *, hasty: bool = False
    ) -> list[tuple[Any, ...]]:
        """The rows of the statement, committed; a hasty one gives up soon where others hold locks."""
        import psycopg

        driver: Any = connection.connection.driver_connection
        cursor = psycopg.ClientCursor(driver)
        try:
            cursor.execute(_HASTE + self.text if hasty else self.text, self._sent(values))
            while cursor.nextset():
                pass
            return self._read(cursor)
        except psycopg.Error as error:
            broken = driver.closed
            if broken:
                connection.invalidate()
            raise sa.exc.DBAPIError(None, None, error, connection_invalidated=broken) from error
        finally:
            cursor.close()

    def _sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        named = self.compiled.construct_params(values, escape_names=False)
        escaped = self.compiled.escaped_bind_names
        return {
            escaped.get(name, name): send(named[name]) if send else named[name]
            for name, send in self.sending.items()
        }

    def _read(self, cursor: Any) -> list[tuple[Any, ...]]:
        """The rows, as their columns' types would have them; for most types the driver does that."""
        codes = [column.type_code for column in cursor.description]
        readers = [_reader(kind, self.dialect, code) for kind, code in zip(self.kinds, codes, strict=True)]
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        if not any(readers):
            return rows
        return [
            tuple(read(value) if read else value for read, value in zip(readers, row, strict=True))
            for row in rows
        ]


def _sender(kind: Any, dialect: sa.Dialect) -> Any:
    return kind.dialect_impl(dialect).bind_processor(dialect)


def _reader(kind: Any, dialect: sa.Dialect, code: int) -> Any:
    return kind.dialect_impl(dialect).result_processor(dialect, code)
