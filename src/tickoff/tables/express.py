"""PostgreSQL by psycopg in one round trip: the settings of the plan, the statement, and the commit.

A flush of a few hundred records takes the server a few milliseconds; BEGIN, SET LOCAL and COMMIT as trips of
their own would add half of that. Several statements in one message are one transaction, with no trip between.

To parse and plan the statement takes another half a millisecond, so it is prepared once per connection. Where
that cannot be, above all behind a pooler that hands a session from client to client, it is sent in full.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import psycopg
import sqlalchemy as sa

from ..stores.sql.bounded import notice_pooler, shares_sessions
from .arrays import writer
from .dialects import KEYED_PLANS

_HASTE = "SET LOCAL lock_timeout = '50ms'; "

_ONE_PLAN = "SET LOCAL plan_cache_mode = force_generic_plan; "
"""With the keyed plans there is nothing to choose from again: planning takes as long as writing 50 rows."""

_KNOWN = "tickoff prepared"
"""Where a connection's own statements are noted, by their names."""


@dataclass
class Express:
    """A statement, compiled once."""

    compiled: Any
    name: str
    address: str
    """Of the database."""
    sending: Mapping[str, Any]
    """By parameter, what turns a value into one the driver takes."""
    kinds: tuple[Any, ...]
    """The types of the columns."""
    dialect: sa.Dialect

    preparable: bool = True

    @classmethod
    def of(cls, statement: sa.Select[Any], dialect: sa.Dialect, address: str) -> Express:
        """Compile a statement for the engine's dialect."""
        compiled: Any = statement.compile(dialect=dialect)
        sending = {name: _sender(bind.type, dialect) for bind, name in compiled.bind_names.items()}
        kinds = tuple(column.type for column in statement.selected_columns)
        name = f"tickoff_{hashlib.sha256(compiled.string.encode()).hexdigest()[:24]}"
        return cls(compiled, name, address, sending, kinds, dialect)

    def run(
        self, connection: sa.Connection, values: Mapping[str, Any], *, hasty: bool = False
    ) -> list[tuple[Any, ...]]:
        """The rows of the statement, committed; a hasty one gives up soon where others hold locks."""
        driver: Any = connection.connection.driver_connection
        cursor = psycopg.ClientCursor(driver)
        try:
            cursor.execute(self._message(connection, cursor, hasty=hasty), self._sent(values))
            while cursor.nextset():
                pass
            return self._read(cursor)
        except psycopg.Error as error:
            broken = driver.closed
            if broken:
                connection.invalidate()
            notice_pooler(self.address, error)
            raise sa.exc.DBAPIError(None, None, error, connection_invalidated=broken) from error
        finally:
            cursor.close()

    def _message(self, connection: sa.Connection, cursor: Any, *, hasty: bool) -> str:
        """All that is sent, but for the values."""
        haste = _HASTE if hasty else ""
        if self._prepared(connection, cursor):
            return f"{KEYED_PLANS}; {_ONE_PLAN}{haste}EXECUTE {self.name} ({self._places})"
        return f"{KEYED_PLANS}; {haste}{self.compiled.string}"

    def _prepared(self, connection: sa.Connection, cursor: Any) -> bool:
        """Whether the connection has the statement prepared, now if not before."""
        known = connection.info.setdefault(_KNOWN, set())
        if self.name not in known and self._may_be_prepared:
            self._prepare(cursor)
            known.add(self.name)
        return self._may_be_prepared

    def _prepare(self, cursor: Any) -> None:
        """What the server cannot prepare, for want of a parameter's type, it is sent in full."""
        try:
            cursor.execute(f"PREPARE {self.name} AS {self._numbered}")
        except psycopg.ProgrammingError as error:
            notice_pooler(self.address, error)
            self.preparable = False

    @property
    def _may_be_prepared(self) -> bool:
        return self.preparable and not shares_sessions(self.address)

    @cached_property
    def _places(self) -> str:
        return ", ".join(f"%({name})s" for name in self._escaped)

    @cached_property
    def _numbered(self) -> str:
        """The statement with its parameters numbered, in the order of `_places`."""
        numbers = {name: f"${i}" for i, name in enumerate(self._escaped, start=1)}
        text: str = self.compiled.string % numbers
        return text

    @cached_property
    def _escaped(self) -> list[str]:
        """The parameters' names as they stand in the statement."""
        return [self.compiled.escaped_bind_names.get(name, name) for name in self.sending]

    def _sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        named = self.compiled.construct_params(values, escape_names=False)
        sent = (send(named[name]) if send else named[name] for name, send in self.sending.items())
        return dict(zip(self._escaped, sent, strict=True))

    def _read(self, cursor: Any) -> list[tuple[Any, ...]]:
        """The rows, as their columns' types would have them; for most types the driver does that."""
        codes = tuple(map(cursor.pgresult.ftype, range(len(self.kinds))))
        readers = self._readers(codes)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        if not any(readers):
            return rows
        return [
            tuple(read(value) if read else value for read, value in zip(readers, row, strict=True))
            for row in rows
        ]

    @cached_property
    def _readers(self) -> Callable[[tuple[int, ...]], list[Any]]:
        """By the columns' type codes, what makes of each value what its type would have."""
        return cache(
            lambda codes: [_reader(*pair, self.dialect) for pair in zip(self.kinds, codes, strict=True)]
        )


def _sender(kind: Any, dialect: sa.Dialect) -> Any:
    return writer(kind, kind.dialect_impl(dialect).bind_processor(dialect))


def _reader(kind: Any, code: int, dialect: sa.Dialect) -> Any:
    return kind.dialect_impl(dialect).result_processor(dialect, code)
