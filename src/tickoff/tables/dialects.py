"""What differs between the databases when it comes to records, each difference a small named thing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ..errors import ConfigError
from ..stores.sql import dialects as stores

Moment = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
"""Instants with microseconds, in UTC where the database keeps no zone."""

KEYED_PLANS = "; ".join(
    f"SET LOCAL {setting} = off"
    for setting in ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
)
"""For PostgreSQL: a claim walks the key's index and a flush looks its keys up, whatever the statistics of the
minute say; with the planner's free choice, rates fall to a quarter when it turns to scanning the table."""

WALKED_PLANS = "SET LOCAL enable_mergejoin = on; SET LOCAL enable_nestloop = off"
"""After those: two tables are walked side by side, each along the index of its key."""

_NONE: sa.ColumnElement[Any] = sa.literal_column("''")
_COMMA: sa.ColumnElement[Any] = sa.literal_column("','")

_STRICT = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')"
"""Without it, MySQL cuts a result that is too long for its column instead of refusing it."""


@dataclass(frozen=True)
class Dialect:
    """How a database tells the time, begins a write, compares keys, and takes many values at once."""

    name: str
    schema: stores.Dialect
    """What is known of it as a store; its lock for changes of the schema."""
    express: bool = False
    """Whether the driver sends a transaction of several statements in one message."""

    @property
    def begin(self) -> str:
        """The statement that begins a write."""
        return f"{self.schema.begin}; {KEYED_PLANS}" if self.name == "postgresql" else self.schema.begin

    @property
    def locks_rows(self) -> bool:
        """Whether rows are locked one by one; SQLite locks the file."""
        return self.name != "sqlite"

    @property
    def takes_arrays(self) -> bool:
        """Whether many rows' values go into one statement as arrays."""
        return self.name == "postgresql"

    def writing(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """A transaction that writes."""
        return stores.transaction(connection, self.begin)

    def prepare(self, engine: sa.Engine) -> None:
        """Set connections up beyond what the lease store needs."""
        first = {"mysql": _be_strict, "sqlite": _know_md5}.get(self.name)
        if first is not None:
            sa.event.listen(engine, "connect", first)

    def short_lock_waits(self, seconds: int) -> list[str]:
        """What keeps a change of a table from queueing for long, and all others behind it."""
        match self.name:
            case "postgresql":
                return [f"SET LOCAL lock_timeout = '{seconds}s'"]
            case "mysql":
                return [f"SET SESSION lock_wait_timeout = {seconds}"]
            case _:
                return []

    def fingerprint(self, columns: Sequence[sa.Column[Any]]) -> sa.ColumnElement[Any]:
        """A few signs that differ where one of the columns does, NULL and nothing told apart."""
        return sa.func.md5(self._in_one(columns) if columns else _NONE, type_=sa.String())

    def _in_one(self, columns: Sequence[sa.Column[Any]]) -> sa.ColumnElement[Any]:
        """Values of any types in one text."""
        match self.name:
            case "postgresql":
                return sa.cast(sa.func.row(*map(_in_utc, columns)), sa.Text)
            case "sqlite":
                texts = [sa.type_coerce(sa.func.quote(column), sa.Text) for column in columns]
                return reduce(lambda all_, text: all_.concat(_COMMA).concat(text), texts)
            case _:
                return sa.func.concat_ws(
                    _COMMA, *(sa.func.quote(sa.cast(c, sa.LargeBinary)) for c in columns)
                )

    def after(self, seconds: Any) -> sa.ColumnElement[Any]:
        """The database's present plus some seconds: a number, a parameter or a column."""
        match self.name:
            case "postgresql":
                return self._postgresql_moment(_number(seconds))
            case "sqlite":
                modifier = sa.func.printf("+%.3f seconds", seconds)
                return _sqlite_moment(modifier)
            case _:
                micros = sa.cast(_number(seconds) * 1000000, sa.BigInteger)
                return sa.func.timestampadd(
                    sa.text("MICROSECOND"), micros, sa.func.utc_timestamp(6), type_=Moment
                )

    def _postgresql_moment(self, seconds: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        zero: sa.ColumnElement[int] = sa.literal_column("0")
        moment = self.now + sa.func.make_interval(zero, zero, zero, zero, zero, zero, seconds)
        if isinstance(
            seconds, sa.BindParameter
        ):  # in a query of its own it is reckoned once, not for each row
            return sa.select(moment).scalar_subquery()
        return moment

    def moment(self, instant: datetime) -> sa.ColumnElement[Any]:
        """An instant as the database keeps it."""
        known = instant if self.name == "postgresql" else instant.astimezone(UTC).replace(tzinfo=None)
        return sa.literal(known, Moment)

    @property
    def now(self) -> sa.ColumnElement[Any]:
        """The database's present."""
        match self.name:
            case "postgresql":
                return sa.func.statement_timestamp(type_=Moment)
            case "sqlite":
                return _sqlite_moment()
            case _:
                return sa.func.utc_timestamp(6, type_=Moment)

    def seconds_until(self, moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How far off an instant is."""
        match self.name:
            case "postgresql":
                return sa.cast(sa.extract("epoch", moment - self.now), sa.Float)
            case "sqlite":
                return (sa.func.julianday(moment) - sa.func.julianday("now")) * 86400.0
            case _:
                micros = sa.func.timestampdiff(sa.text("MICROSECOND"), sa.func.utc_timestamp(6), moment)
                return sa.cast(micros, sa.BigInteger) / 1000000.0


def _be_strict(dbapi_connection: Any, _record: Any) -> None:
    cursor = dbapi_connection.cursor()
    cursor.execute(_STRICT)
    cursor.close()


def _know_md5(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.create_function("md5", 1, _md5, deterministic=True)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _in_utc(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """An instant's text is that of the session's time zone, and sessions differ."""
    aware = isinstance(column.type, sa.DateTime) and column.type.timezone
    return sa.func.timezone(sa.literal_column("'UTC'"), column) if aware else column


def _number(seconds: Any) -> sa.ColumnElement[Any]:
    return seconds if isinstance(seconds, sa.ColumnElement) else sa.literal(float(seconds), sa.Float)


def _sqlite_moment(*modifiers: Any) -> sa.ColumnElement[Any]:
    """As SQLAlchemy writes it: six digits, of which SQLite's clock knows three."""
    ms = sa.func.strftime("%Y-%m-%d %H:%M:%f", "now", *modifiers)
    return sa.type_coerce(ms.concat("000"), Moment)


def dialect_of(backend: str, driver: str) -> Dialect:
    """The differences for a database and a driver by their names."""
    match backend:
        case "postgresql" | "sqlite":
            return Dialect(backend, stores.dialect_named(backend), express=driver == "psycopg")
        case "mysql" | "mariadb":
            return Dialect("mysql", stores.dialect_named("mysql"))
        case _:
            raise ConfigError(f"the database {backend!r} keeps no records; use SQLite, PostgreSQL or MySQL")
