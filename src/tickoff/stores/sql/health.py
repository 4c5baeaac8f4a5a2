"""What can be amiss with a database that keeps leases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import sqlalchemy as sa

from ..base import Finding
from . import schema

_TRIES = 3


def examine(address: str, connection: sa.Connection) -> list[Finding]:
    """What is amiss; changes nothing, makes nothing."""
    found = [_schema(address, connection)]
    if connection.dialect.name == "postgresql":
        found += [_read_only(address, connection), _pooler(address, connection)]
    return [finding for finding in found if finding is not None]


def _schema(address: str, connection: sa.Connection) -> Finding | None:
    there, wanted = schema.stored_version(connection), schema.MIGRATIONS[-1].version
    if there == wanted:
        return None
    if there > wanted:
        return Finding(
            check="schema",
            what=f"{address} has version {there} of Tickoff's tables, and this Tickoff knows {wanted}",
            danger="this server is refused at its first race",
            remedy="upgrade Tickoff on this machine",
        )
    return Finding(
        check="schema",
        what=f"{address} has {f'version {there} of' if there else 'none of'} Tickoff's tables",
        danger="servers are refused at their first race"
        if there
        else "the first server makes them, which fails if its user may not create tables",
        remedy="run: tickoff migrate",
    )


def _read_only(address: str, connection: sa.Connection) -> Finding | None:
    if not connection.scalar(sa.text("SELECT pg_is_in_recovery()")):
        return None
    return Finding(
        check="postgres-role",
        what=f"{address} is a standby",
        danger="it takes no writes, so every race fails",
        remedy="name the primary in the URL, or add ?target_session_attrs=read-write",
    )


def _pooler(address: str, connection: sa.Connection) -> Finding | None:
    if not any(changes_session(connection) for _ in range(_TRIES)):
        return None
    return Finding(
        check="postgres-pooler",
        what=f"{address} is behind a pooler in transaction mode: each statement may meet another session",
        danger="what one client sets for its session holds for others, such as an isolation or a time-out; "
        "statements are not prepared there, which costs time",
        remedy="give Tickoff a pool in session mode, or the database's own port; your own engines: "
        "prepare_threshold=None",
    )


def changes_session(connection: sa.Connection) -> bool:
    """Whether another client's transaction pushes us from our session, as pools in transaction mode do."""
    ours = _backend(connection.exec_driver_sql)
    other: Any = connection.engine.raw_connection()  # a connection beside ours, from the same pool
    with closing(other):
        cursor = cast("Any", other.cursor())
        try:
            cursor.execute("BEGIN")
            theirs = _backend(lambda text: cursor.execute(text) or cursor)
            return theirs == ours or _backend(connection.exec_driver_sql) != ours
        finally:
            cursor.execute("ROLLBACK")


def _backend(run: Callable[[str], Any]) -> int:
    return int(run("SELECT pg_backend_pid()").fetchone()[0])
