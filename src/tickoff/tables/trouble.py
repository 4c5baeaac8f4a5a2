"""What an error of a database means: try again, no answer, or an answer it does not take."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import sqlalchemy as sa

REFUSALS: tuple[type[Exception], ...] = (sa.exc.StatementError, TypeError, ValueError, ArithmeticError)
"""What is raised for a value that a database, its driver or a column's type does not take."""


class Trouble(Enum):
    """The kinds of trouble with a statement."""

    AGAIN = auto()
    """Two transactions stood in each other's way, and this one was undone."""
    LOCKED = auto()
    """It waited for somebody's lock for as long as it may."""
    SILENT = auto()
    """The database did not answer, or not in time, or does not work."""
    REFUSED = auto()
    """The statement, or a value in it, was refused; the database itself is well."""


def trouble(error: Exception) -> Trouble:
    """The kind of an error raised by a statement."""
    if isinstance(error, sa.exc.TimeoutError):
        return Trouble.SILENT
    if not isinstance(error, sa.exc.DBAPIError) or error.orig is None:
        return Trouble.REFUSED
    if error.connection_invalidated:
        return Trouble.SILENT
    match type(error.orig).__module__.partition(".")[0]:
        case "psycopg":
            return _postgresql(error.orig)
        case "sqlite3":
            return _sqlite(error.orig)
        case _:
            return _mysql(error.orig)


_DEADLOCKS = {"40001", "40P01"}
_MIXED_UP = {"26000", "42P05"}
"""Prepared statements that are another session's: it is known now, and they are sent in full from here on."""
_UNWELL = ("08", "25", "53", "55", "57", "58", "F0", "XX")
"""Classes of SQLSTATE: connection, read-only, resources, locks, shut down, I/O, configuration, internal."""


def _postgresql(error: Any) -> Trouble:
    state = getattr(error, "sqlstate", None)
    if state in _DEADLOCKS | _MIXED_UP:
        return Trouble.AGAIN
    if state == "55P03":
        return Trouble.LOCKED
    if state is None:  # the driver's own: what it cannot send is refused, the rest is about the connection
        silent = type(error).__name__ in {"OperationalError", "InterfaceError", "ConnectionTimeout"}
        return Trouble.SILENT if silent else Trouble.REFUSED
    return Trouble.SILENT if state.startswith(_UNWELL) else Trouble.REFUSED


_SQLITE_UNWELL = {5, 6, 7, 8, 9, 10, 11, 13, 14, 26}
"""Busy, locked, no memory, read-only, interrupted, I/O, corrupt, full, cannot open, not a database."""


def _sqlite(error: Any) -> Trouble:
    code = getattr(error, "sqlite_errorcode", None)
    return Trouble.SILENT if code is not None and code & 0xFF in _SQLITE_UNWELL else Trouble.REFUSED


_MYSQL_AGAIN = {1020, 1213}
_MYSQL_UNWELL = {0, 1021, 1037, 1040, 1041, 1053, 1114, 1290, 1317, 1792, 1836, 1969, 3024, 3572}
"""Disk full, memory, connections, shut down, table full, lock waits, read-only, killed, too slow."""


def _mysql(error: Any) -> Trouble:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if code in _MYSQL_AGAIN:
        return Trouble.AGAIN
    if code == 1205:
        return Trouble.LOCKED
    if code in _MYSQL_UNWELL or (code is not None and 2000 <= code < 3000):  # 2xxx: the client's, on the line
        return Trouble.SILENT
    return Trouble.REFUSED
