"""psycopg connections that answer or fail in time: the server may be stopped, or behind a dead network."""

from __future__ import annotations

import logging
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import errors
from psycopg.abc import RV, PQGen

_log = logging.getLogger("tickoff")

_POLL = 0.1


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed when an answer takes longer than its limit."""

    limit: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = _POLL, timeout: float | None = None) -> RV:
        """Wait for the answer, but no longer than the limit."""
        if timeout is not None or self.limit is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.limit)
        except errors._WaitTimeout as error:
            self.close()
            raise psycopg.OperationalError(f"no answer within {self.limit:g} s") from error


_pooled: set[str] = set()
"""Databases behind a pooler, which may hand one session to many clients."""


def look_for_pooler(address: str, connection: psycopg.Connection[Any], session: int) -> None:
    """Notice a pooler by the number of the session that answers, which is not that of the one we opened.

    Before anything is prepared: clients of a pooler name their statements alike, and in the session of
    another one, ours would run a statement of theirs.
    """
    if session != connection.info.backend_pid and address not in _pooled:
        _pooled.add(address)
        _log.info("%s is behind a pooler: no statements are prepared there", address)


def notice_pooler(address: str, error: BaseException) -> None:
    """Prepare no more statements on a database whose pooler (PgBouncer, say) mixes them up."""
    mixed_up = (errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName)
    if isinstance(error, mixed_up) and address not in _pooled:
        _pooled.add(address)
        _log.warning(
            "%s is behind a pooler that shares sessions between clients: prepared statements are off for it",
            address,
        )


def shares_sessions(address: str) -> bool:
    """Whether a database is known to be behind a pooler."""
    return address in _pooled


def suit_pooler(address: str, connection: psycopg.Connection[Any]) -> None:
    """Set a new connection up for what is known of its database."""
    if shares_sessions(address):
        connection.prepare_threshold = None


def bind(engine: sa.Engine, limit: float) -> None:
    """Make every connection of the engine a bounded one."""

    @sa.event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: Any, kwargs: Any) -> BoundedConnection:
        connection = BoundedConnection.connect(*args, **kwargs)
        connection.limit = limit
        return connection
