"""The user's connection in one shape, whichever library it belongs to; what cannot be guarded is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from typing import Any, Protocol

import sqlalchemy as sa

from ..errors import ConfigError
from .fence import DIALECTS
from .sessions import is_session

_AUTOCOMMIT_REMEDY = {
    "sqlalchemy": "use engine.begin(), or an engine or connection without isolation_level='AUTOCOMMIT'",
    "django": "put it into `with transaction.atomic():`",
}


class DjangoConnection(Protocol):
    """What is used of a Django connection (`django.db.connection`)."""

    vendor: str
    in_atomic_block: bool

    def cursor(self) -> Any:
        """A cursor as the DB-API has it."""
        ...

    def copy(self) -> Any:
        """Another connection to the same database."""
        ...


class Transaction(Protocol):
    """The transaction that is open on the user's connection, and how to speak within it."""

    @property
    def dialect(self) -> sa.Dialect:
        """The database's dialect, in the driver's way of writing parameters."""
        ...

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        ...

    def run(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Any:
        """Execute within the transaction; the first row of the answer, None when there is none."""
        ...

    def run_apart(self, statement: sa.Executable) -> Any:
        """Execute by itself, on another connection, committed when this returns."""
        ...

    def refuse_autocommit(self) -> None:
        """Raise unless what is written now is kept or dropped together."""
        ...


class OnSqlAlchemy:
    """A transaction of an SQLAlchemy Connection; a Session's is one, too."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.dialect = connection.dialect

    @property
    def mariadb(self) -> bool:
        """Whether the server is MariaDB, whatever the URL says."""
        return bool(getattr(self.dialect, "is_mariadb", False))

    def run(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Any:
        """Execute by SQLAlchemy, which begins the transaction if it is not begun."""
        result = self.connection.execute(statement, values or {})
        return result.fetchone() if result.returns_rows else None

    def run_apart(self, statement: sa.Executable) -> Any:
        """Connect as the engine does, but beside its pool, which may have no connection left."""
        engine = self.connection.engine
        own = sa.Engine(engine.pool.recreate(), engine.dialect, engine.url)  # an async one would do, too
        try:
            with own.begin() as connection:
                return OnSqlAlchemy(connection).run(statement)
        finally:
            own.dispose()

    def refuse_autocommit(self) -> None:
        """Ask the driver: an engine's and a connection's options end up there."""
        if not self.connection.in_transaction():
            self.connection.begin()
        driver: Any = self.connection.connection.dbapi_connection
        if self._commits_at_once(driver):
            raise _autocommit("sqlalchemy")

    def _commits_at_once(self, driver: Any) -> bool:
        if self.dialect.name == "sqlite":  # sqlite3 takes its hands off when the user sends BEGIN himself
            by_mode = driver.isolation_level is None or getattr(driver, "autocommit", None) is True
            return by_mode and not driver.in_transaction
        return bool(self.dialect.detect_autocommit_setting(driver))


class OnDjango:
    """A transaction of a Django connection."""

    def __init__(self, connection: DjangoConnection) -> None:
        self.connection = connection
        self.dialect = _django_dialect(connection.vendor)

    @property
    def mariadb(self) -> bool:
        """Whether Django found MariaDB at the other end."""
        return bool(getattr(self.connection, "mysql_is_mariadb", False))

    def run(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Any:
        """Execute by Django's cursor."""
        return _run_django(self.connection, self.dialect, statement, values or {})

    def run_apart(self, statement: sa.Executable) -> Any:
        """Django's copy of a connection is a new one, in autocommit."""
        with closing(self.connection.copy()) as other:
            return _run_django(other, self.dialect, statement, {})

    def refuse_autocommit(self) -> None:
        """Django commits every statement outside of an atomic block."""
        if not self.connection.in_atomic_block:
            raise _autocommit("django")


def transaction_of(db: object) -> Transaction:
    """The transaction that is open on what the user gave."""
    if "django" in sys.modules and hasattr(db, "in_atomic_block"):
        return OnDjango(db)  # type: ignore[arg-type] # django.db.connection is a proxy, known by its looks
    return OnSqlAlchemy(sqlalchemy_connection(db))


def sqlalchemy_connection(db: object, **bind: Any) -> sa.Connection:
    """The SQLAlchemy connection in what the user gave; the rest is refused, each with its remedy."""
    if is_session(db):
        return _supported(db.connection(bind_arguments=bind))
    if isinstance(db, sa.Connection):
        return _supported(db)
    raise ConfigError(f"db={type(db).__qualname__} is no transaction of SQLAlchemy: {_remedy(db)}")


@contextmanager
def begun(engine: object) -> Iterator[sa.Connection]:
    """A transaction on a connection of the engine."""
    if not isinstance(engine, sa.Engine):
        raise ConfigError(f"engine={type(engine).__qualname__} is no Engine of SQLAlchemy: {_remedy(engine)}")
    with engine.begin() as connection:
        yield connection


def _supported(connection: sa.Connection) -> sa.Connection:
    name = connection.dialect.name
    if name not in DIALECTS:
        raise ConfigError(f"the database {name!r} is not supported; use SQLite, PostgreSQL, MySQL or MariaDB")
    return connection


def _remedy(db: object) -> str:
    names = {base.__name__ for base in type(db).__mro__}
    if names & {"AsyncSession", "AsyncConnection", "async_scoped_session"}:
        return "hand the function over instead: await db.run_sync(tick.guard)"
    if "AsyncEngine" in names:
        return "use `async with engine.begin() as db: await db.run_sync(tick.guard)`"
    if hasattr(db, "in_atomic_block"):
        return (
            "guard Django's connection inside `with transaction.atomic():`; for rows by key use Django's "
            "bulk_create(update_conflicts=True, …)"
        )
    if isinstance(db, sa.Engine):
        return "pass a connection: `with engine.begin() as db:`"
    if isinstance(db, sa.Connection) or is_session(db):
        return "pass its engine, or guard the transaction that is open on it: tick.guard(db)"
    return "pass an SQLAlchemy Connection or Session"


def _autocommit(library: str) -> ConfigError:
    return ConfigError(
        "db is in autocommit: every statement is kept at once, so there is no transaction to guard; "
        + _AUTOCOMMIT_REMEDY[library]
    )


@cache
def _django_dialect(vendor: str) -> sa.Dialect:
    """SQLAlchemy's dialect with the parameters every Django cursor takes."""
    if vendor not in DIALECTS:
        raise ConfigError(
            f"the database {vendor!r} is not supported; use SQLite, PostgreSQL, MySQL or MariaDB"
        )
    make: Callable[..., sa.Dialect] = sa.make_url(f"{vendor}://").get_dialect()
    return make(paramstyle="format")


def _run_django(connection: Any, dialect: sa.Dialect, statement: Any, values: Mapping[str, Any]) -> Any:
    compiled = statement.compile(dialect=dialect)
    with connection.cursor() as cursor:
        cursor.execute(str(compiled), [values[name] for name in getattr(compiled, "positiontup", None) or ()])
        return cursor.fetchone() if cursor.description else None
