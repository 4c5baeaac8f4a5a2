"""How long one holder may keep another waiting, by the means of each engine.

A holder that is stopped inside its guarded transaction keeps the fence's row locked. PostgreSQL and
MariaDB can end a session that is idle inside a transaction: that limit is set to what is left of the
lease. MySQL and SQLite have none. The taker waits for the row no longer than its own lease lasts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from .connections import Transaction


def _ms(setting: str) -> str:
    """A limit as PostgreSQL shows it ('5s', '1min', 0 for none), in ms; NULL for none."""
    return f"nullif(extract(epoch FROM CAST({setting} AS interval)) * 1000, 0)"


def _shortest(setting: str) -> str:
    """The user's limit or what is left of the lease, whichever ends first, as a setting."""
    return f"CAST(CAST(least({_ms(setting)}, CAST(:left AS bigint)) AS bigint) AS text)"


# set_config takes effect within the statement, so the wait for the row is already bounded.
_RAISE = sa.text(f"""
    WITH was AS MATERIALIZED (SELECT current_setting('lock_timeout') AS patience),
    bounded AS MATERIALIZED (
        SELECT patience, set_config('lock_timeout', {_shortest("patience")}, true) FROM was
    )
    INSERT INTO tickoff_fence AS held (name, fence)
    SELECT CAST(:name AS varchar), CAST(:fence AS bigint) FROM bounded
    ON CONFLICT (name) DO UPDATE SET fence = greatest(held.fence, excluded.fence)
    RETURNING fence, (SELECT patience FROM bounded)
""")  # noqa: S608 - constants

# The user's own limit is kept beside, so that a second guard in a transaction can prolong ours.
_LIMIT = sa.text(f"""
    WITH own AS MATERIALIZED (
        SELECT set_config('tickoff.idle', coalesce(
            nullif(current_setting('tickoff.idle', true), ''),
            current_setting('idle_in_transaction_session_timeout')
        ), true) AS idle
    )
    SELECT
        set_config('lock_timeout', :patience, true),
        set_config('idle_in_transaction_session_timeout', {_shortest("idle")}, true)
    FROM own
""")  # noqa: S608 - constants


def raise_on_postgres(transaction: Transaction, name: str, fence: int, left: float) -> int:
    """Raise the fence with a bounded wait, then bound what a later holder may have to wait for us."""
    ms = max(1, int(left * 1000))
    high, patience = transaction.run(_RAISE, {"name": name, "fence": fence, "left": ms})
    transaction.run(_LIMIT, {"patience": patience, "left": ms})
    return int(high)


def raise_on_mariadb(seconds: int) -> sa.TextClause:
    """The statement that raises the fence, with a bounded wait for the row."""
    return sa.text(f"""
        SET STATEMENT innodb_lock_wait_timeout = LEAST(@@innodb_lock_wait_timeout, {seconds:d}) FOR
        INSERT INTO tickoff_fence (name, fence) VALUES (:name, :fence)
        ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))
    """)  # noqa: S608 - constants and a number


_IDLE = "tickoff_idle"
"""Where a MariaDB session's own limit is kept while ours is set."""


def end_when_idle(connection: sa.Connection, seconds: int) -> None:
    """Have MariaDB end the session when it idles in this transaction; put back at its end."""
    if not sa.event.contains(connection, "commit", _put_back):
        for end in ("commit", "rollback"):
            sa.event.listen(connection, end, _put_back)
    own = connection.info.get(_IDLE)
    if own is None:
        own = connection.info[_IDLE] = _say(connection, "SELECT @@idle_transaction_timeout")
    _say(connection, f"SET SESSION idle_transaction_timeout = {min(own or seconds, seconds):d}")


def _put_back(connection: sa.Connection) -> None:
    own = connection.info.pop(_IDLE, None) if not connection.invalidated else None
    if own is None:
        return
    try:
        _say(connection, f"SET SESSION idle_transaction_timeout = {own:d}")
    except connection.dialect.loaded_dbapi.Error:
        connection.invalidate()  # ended by our limit, perhaps: nobody may inherit it


def _say(connection: sa.Connection, text: str) -> int:
    """Speak to the driver itself: SQLAlchemy executes nothing in a transaction that is about to end."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text)
        row = cursor.fetchone() if cursor.description else None
        return int(row[0]) if row else 0
    finally:
        cursor.close()


def waited_too_long(error: BaseException) -> bool:
    """Whether the engine gave up waiting for somebody else's lock."""
    return any(_says_so(cause) for cause in _causes(error))


def _says_so(error: Any) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorname.startswith("SQLITE_BUSY")
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    number = error.args[0] if error.args else None
    return state == "55P03" or number == 1205


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = getattr(error, "orig", None) or error.__cause__
