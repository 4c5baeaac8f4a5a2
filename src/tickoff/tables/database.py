"""Short transactions on connections of our own: bounded, tried again where two of them collide."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from ..errors import StoreUnreachable
from ..stores.sql.engines import EngineSource
from ..stores.sql.forking import amid_sql
from ..stores.sql.store import in_one_line
from .dialects import dialect_of
from .trouble import Trouble, trouble

if TYPE_CHECKING:
    from .express import Express

T = TypeVar("T")

_TRIES = 8
"""How often a transaction is tried that others keep undoing."""


class RowsLocked(StoreUnreachable):
    """Somebody's transaction held what we needed for longer than we wait."""


class Prepared:
    """A statement that is run often, so that it is built and compiled once."""

    def __init__(self, statement: sa.Select[Any]) -> None:
        self.statement = statement
        self._express: Express | None = None

    def express(self, dialect: sa.Dialect, address: str) -> Express:
        """In the form for one round trip."""
        from .express import Express  # which needs the driver of PostgreSQL

        if self._express is None:
            self._express = Express.of(self.statement, dialect, address)
        return self._express


class Database:
    """A database with users' tables in it."""

    def __init__(self, source: EngineSource, limit: float) -> None:
        self._source = source
        self._limit = limit
        self._engine: sa.Engine | None = None
        self._writers = self._one_by_one()
        self.dialect = dialect_of(source.backend, source.driver)
        """What is particular to this database."""

    @property
    def address(self) -> str:
        """Where it is, without the password."""
        return self._source.address

    @property
    def engine(self) -> sa.Engine:
        """Opened at first use."""
        if self._engine is None:
            engine = self._source.open(self._limit)
            self.dialect.prepare(engine)
            self._engine = engine
        return self._engine

    def atomically(self, step: Callable[[sa.Connection], T]) -> T:
        """One write transaction at READ COMMITTED; tried again, as a whole, after a deadlock."""

        def transaction(connection: sa.Connection) -> T:
            with self._writers, self.dialect.writing(connection):
                return step(connection)

        return self._persistently(transaction)

    def at_once(
        self, statement: Prepared, values: Mapping[str, Any], *, hasty: bool = False
    ) -> Sequence[Sequence[Any]]:
        """A transaction of one statement: its rows. A hasty one raises `RowsLocked` instead of waiting."""
        if self.dialect.express:
            express = statement.express(self.engine.dialect, self.address)
            return self._persistently(lambda connection: express.run(connection, values, hasty=hasty))
        return self.atomically(lambda connection: connection.execute(statement.statement, values).all())

    def _persistently(self, transaction: Callable[[sa.Connection], T]) -> T:
        for attempt in range(1, _TRIES + 1):
            try:
                with self._connected() as connection:
                    return transaction(connection)
            except sa.exc.DBAPIError as error:
                if trouble(error) is not Trouble.AGAIN or attempt == _TRIES:
                    raise self._told(error) from error.orig
            time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - to be out of step, not to be secret
        raise AssertionError("unreachable")

    def read(self, step: Callable[[sa.Connection], T]) -> T:
        """Plain queries, each a transaction of its own."""
        try:
            with self._connected() as connection:
                return step(connection)
        except sa.exc.DBAPIError as error:
            raise self._told(error) from error.orig

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent."""
        self._writers = self._one_by_one()  # a thread that is gone may be among them
        if self._engine is not None:
            self._engine.dispose(close=False)

    def close(self) -> None:
        """Close the connections."""
        if self._engine is not None:
            with amid_sql:
                self._engine.dispose()

    def _one_by_one(self) -> AbstractContextManager[Any]:
        """SQLite has one writer at a time: our threads queue here, since its own waiting is by naps."""
        return threading.Lock() if self._source.backend == "sqlite" else nullcontext()

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        try:
            with amid_sql, self.engine.connect() as connection:
                yield connection
        except sa.exc.TimeoutError as error:
            raise StoreUnreachable(f"{self.address} has no connection free: {in_one_line(error)}") from error

    def _told(self, error: sa.exc.DBAPIError) -> Exception:
        """The error as our caller shall see it: a refusal stays what it is."""
        cause = in_one_line(error.orig or error)
        match trouble(error):
            case Trouble.REFUSED:
                return error
            case Trouble.LOCKED:
                return RowsLocked(
                    f"rows or the table stay locked in {self.address}: {cause}; try again later"
                )
            case _:
                return StoreUnreachable(f"{self.address} did not answer: {cause}")
