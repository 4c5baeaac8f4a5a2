"""From an URL or a user's Engine to an engine of our own: autocommit, bounded, its own connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from ...errors import ConfigError
from .dialects import dialect_of
from .options import connect_args, refuse_unknown

# The driver we use per database, and the extra that installs it; a suffix in the URL is not needed.
_DRIVERS = {
    "postgresql": ("postgresql+psycopg", "postgres"),
    "mysql": ("mysql+pymysql", "mysql"),
    "mariadb": ("mariadb+pymysql", "mysql"),
    "sqlite": ("sqlite", ""),
}

_SIDECAR = "-tickoff"
_OWN_FILE = "tickoff.db"


class EngineSource(Protocol):
    """Something that opens engines to one database."""

    @property
    def address(self) -> str:
        """Where the database is, without the password."""
        ...

    @property
    def driver(self) -> str:
        """The name of the driver, as SQLAlchemy calls it."""
        ...

    @property
    def backend(self) -> str:
        """The name of the database's kind, as SQLAlchemy calls it."""
        ...

    def open(self, limit: float) -> sa.Engine:
        """An engine with connections of its own, which answer or fail within `limit` seconds."""
        ...


@dataclass(frozen=True)
class UrlSource:
    """A database named by an URL."""

    url: sa.URL = field(repr=False)

    @cached_property
    def address(self) -> str:
        """The URL without password, options and driver."""
        plain = self.url.set(drivername=self.url.get_backend_name(), query={})
        return plain.render_as_string(hide_password=True)

    @property
    def driver(self) -> str:
        """The driver we chose for the database."""
        return self.url.get_driver_name()

    @property
    def backend(self) -> str:
        """The kind of database."""
        return self.url.get_backend_name()

    def open(self, limit: float) -> sa.Engine:
        """An engine from the URL."""
        arguments = connect_args(self.url, limit)
        try:
            engine = sa.create_engine(
                self.url,
                isolation_level="AUTOCOMMIT",
                skip_autocommit_rollback=True,
                pool_reset_on_return=None,
                pool_timeout=limit,
                pool_size=5,
                max_overflow=10,
                connect_args=arguments,
                **_dialect_args(self.url),
            )
        except ModuleNotFoundError as error:
            extra = _DRIVERS[self.url.get_backend_name()][1]
            raise ConfigError(
                f"{error.name}, the driver for {self.address}, is missing; "
                f"run: pip install 'tickoff[{extra}]'"
            ) from error
        except ValueError as error:
            raise ConfigError(f"the URL of {self.address} has a wrong option: {error}") from error
        refuse_unknown(engine)
        if self.driver == "psycopg":
            from .bounded import bind

            bind(engine, limit)
        return _prepared(engine, limit, self.address)


@dataclass(frozen=True)
class SharedSource:
    """A user's Engine: connected the way the user connects, from a pool of our own.

    With a pool of our own, renewals never queue behind the user's transactions, and our autocommit mode
    never leaks into them. Time-outs are those of the user's driver.
    """

    engine: sa.Engine

    @cached_property
    def address(self) -> str:
        """The Engine's URL without secrets."""
        return UrlSource(self.engine.url).address

    @property
    def driver(self) -> str:
        """The user's driver."""
        return self.engine.driver

    @property
    def backend(self) -> str:
        """The kind of database."""
        return self.engine.dialect.name

    def open(self, limit: float) -> sa.Engine:
        """An engine that connects as the user's does."""
        own = sa.create_engine(
            self.engine.url,
            isolation_level="AUTOCOMMIT",
            skip_autocommit_rollback=True,
            pool=self.engine.pool.recreate(),
        )
        return _prepared(own, limit, self.address)


def source_of(target: str | sa.Engine) -> EngineSource:
    """Where to keep leases, for an URL or an Engine."""
    if isinstance(target, str):
        return UrlSource(_beside(_normal(_parsed(target))))
    _refuse_async(target)
    dialect_of(target)
    if target.dialect.name == "sqlite":  # leases need a file of their own
        return UrlSource(_beside(_normal(target.url).set(query={})))
    return SharedSource(target)


def database_of(target: str | sa.Engine) -> EngineSource:
    """The user's own database, for an URL or an Engine: for what must be where the user's tables are."""
    if isinstance(target, str):
        url = _parsed(target)
        _refuse_unknown_backend(url)
        return UrlSource(_file_only(_normal(url)))
    _refuse_async(target)
    dialect_of(target)
    if target.dialect.name == "sqlite":
        return UrlSource(_file_only(_normal(target.url)))
    return SharedSource(target)


def _refuse_unknown_backend(url: sa.URL) -> None:
    backend = url.get_backend_name()
    if backend not in {"postgres", *_DRIVERS}:
        raise ConfigError(
            f"database={backend}://… is no database for records and writes; name one with postgresql://, "
            "mysql://, mariadb:// or sqlite:///"
        )


def _refuse_async(engine: sa.Engine) -> None:
    if engine.dialect.is_async:
        raise ConfigError(
            "an async Engine was given; Tickoff works in threads of its own, so pass the URL of the database"
        )


def _parsed(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        url = None
    if url is None or "@" in (url.host or ""):  # not shown: it may be a part of the password
        raise ConfigError(
            "the database URL cannot be read; write it as scheme://user:password@host:port/name, "
            "and in user and password %40 for @ and %2F for /"
        )
    return _hiding(url)


def _hiding(url: sa.URL) -> sa.URL:
    """The URL with its password where SQLAlchemy knows it to be one, and shows it nowhere."""
    password = url.query.get("password")
    if not isinstance(password, str):
        return url
    return url.difference_update_query(["password"]).set(password=password)


def _normal(url: sa.URL) -> sa.URL:
    backend = url.get_backend_name()
    backend = "postgresql" if backend == "postgres" else backend
    if backend in {"mysql", "mariadb"} and not url.database:
        raise ConfigError(f"the URL names no database; write {backend}://user:password@host:port/database")
    driver, _ = _DRIVERS[backend]
    return url.set(drivername=driver)


def _beside(url: sa.URL) -> sa.URL:
    """For SQLite, a file of our own beside the user's: a long transaction of theirs must not block leases.

    The rule depends on nothing but the name, so that all processes agree: `shop.db` keeps its leases in
    `shop.db-tickoff`, and only a file called `tickoff.db`, or so already, is taken as it is.
    """
    if url.get_backend_name() != "sqlite":
        return url
    path = _file_only(url).database or ""
    if Path(path).name == _OWN_FILE or path.endswith(_SIDECAR):
        return url
    return url.set(database=path + _SIDECAR)


def _file_only(url: sa.URL) -> sa.URL:
    """Refuse what only one process could see."""
    if url.get_backend_name() != "sqlite":
        return url
    path = url.database or ""
    if url.host or url.username:
        raise ConfigError(
            "a SQLite URL names no host; write sqlite:///file.db, or sqlite:////path/to/file.db"
        )
    if not path or ":memory:" in path or "mode=memory" in str(url.query):
        raise ConfigError(
            "an in-memory SQLite database is seen by one process only; name a file (sqlite:///tickoff.db), "
            "or use memory:// in tests"
        )
    if path.startswith("file:"):
        raise ConfigError("SQLite 'file:' URIs are not supported; write sqlite:///path/to/file.db")
    return url


def _dialect_args(url: sa.URL) -> dict[str, Any]:
    # SQLAlchemy asks a new PostgreSQL connection for hstore's ids, a round trip we have no use for.
    return {"use_native_hstore": False} if url.get_backend_name() == "postgresql" else {}


def _prepared(engine: sa.Engine, limit: float, address: str) -> sa.Engine:
    dialect = dialect_of(engine)

    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi_connection: Any, _record: Any) -> None:
        told = dialect.prepare(dbapi_connection, limit)
        if engine.driver == "psycopg":
            from .bounded import look_for_pooler, suit_pooler

            look_for_pooler(address, dbapi_connection, told[0])
            suit_pooler(address, dbapi_connection)

    return engine
