"""Rows inserted or updated by a stable key, in bulk, so that a repeated import changes nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from .batches import rows_of
from .connections import sqlalchemy_connection
from .forms import Form
from .sessions import is_session
from .target import Target, target_of

_OUT_OF_RANGE = 1690
"""MySQL's number for what `forms` provokes when a row hits another unique key than ours."""

_DUPLICATE = 1062


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
            if target.rivals and _hit_a_rival(error):
                raise _rival(connection, target, error) from error
            raise
        count += read
    return count


def _connection(db: object, table: object) -> sa.Connection:
    if not is_session(db):
        return sqlalchemy_connection(db)
    db.flush()  # what the session has in hand was written before, in the order of the program
    bind = {} if isinstance(table, str) else {"clause" if isinstance(table, sa.Table) else "mapper": table}
    return sqlalchemy_connection(db, **bind)


def _hit_a_rival(error: sa.exc.DBAPIError) -> bool:
    """Whether MySQL says, by an overflow, that a row has hit another row through another unique key."""
    said = error.orig.args if error.orig is not None else ()
    return len(said) > 1 and said[0] == _OUT_OF_RANGE and "exp(" in str(said[1])


def _rival(connection: sa.Connection, target: Target, error: sa.exc.DBAPIError) -> sa.exc.IntegrityError:
    """The error in the words and the class that other databases have for it."""
    text = (
        f"a row for {target.table.fullname} has another row's value in a unique key other than "
        f"({', '.join(target.key)})"
    )
    driver = connection.dialect.loaded_dbapi
    return sa.exc.IntegrityError(error.statement, None, driver.IntegrityError(_DUPLICATE, text))
