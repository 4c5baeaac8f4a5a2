"""Rows inserted or updated by a stable key, in bulk, so that a repeated import changes nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session, scoped_session

from .batches import rows_of
from .connections import sqlalchemy_connection
from .forms import Form
from .target import Target, target_of

_OUT_OF_RANGE = 1690
"""MySQL's number for what `forms` provokes when a row hits another unique key than ours."""


def upsert(
    db: object,
    table: str | sa.Table | type[Any],
    rows: Iterable[Mapping[str, Any]],
    key: str | tuple[str, ...],
) -> int:
    """Write the rows in the transaction that is open on `db`; says how many there were."""
    connection = _connection(db, table)
    target = target_of(connection, table, key)
    given = rows_of(rows, target)
    if given is None:
        return 0
    form, count = Form(target, given.names, connection.dialect), 0
    for read, batch in given.batches:
        try:
            form.write(connection, batch)
        except sa.exc.DBAPIError as error:
            _tell_of_rivals(target, error)
            raise
        count += read
    return count


def _connection(db: object, table: object) -> sa.Connection:
    if not isinstance(db, Session | scoped_session):
        return sqlalchemy_connection(db)
    db.flush()  # what the session has in hand was written before, in the order of the program
    bind = {} if isinstance(table, str) else {"clause" if isinstance(table, sa.Table) else "mapper": table}
    return sqlalchemy_connection(db, **bind)


def _tell_of_rivals(target: Target, error: sa.exc.DBAPIError) -> None:
    """Say in words what MySQL could only say by an overflow."""
    number = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if target.rivals and number == _OUT_OF_RANGE and "exp(" in str(error.orig):
        raise sa.exc.IntegrityError(
            f"a row for {target.table.fullname} has the value of another row in a unique key other than "
            f"({', '.join(target.key)})",
            None,
            error.orig or error,
        ) from error
