"""The guard: it makes the open transaction one that only the newest holder of a name can commit."""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakSet

from ..errors import ConfigError, FenceHeld, StaleFence
from . import fence as fences
from . import limits
from .connections import OnSqlAlchemy, Transaction, transaction_of

_made: WeakSet[Any] = WeakSet()
"""Engines whose database has the table."""


def guard(db: object, name: str, fence: int, left: float) -> None:
    """Check and raise the fence of a name in the open transaction; the row stays locked until its end."""
    transaction = transaction_of(db)
    transaction.refuse_autocommit()
    _make_table(transaction)
    if left <= 0:  # too late to write: look, but hold nobody up
        high = _first(transaction.run(fences.look, {"of": name})) or 0
    else:
        high = _raised(transaction, name, fence, left)
    if high > fence:
        raise StaleFence(name, fence, high)


def _raised(transaction: Transaction, name: str, fence: int, left: float) -> int:
    """The fence after it was raised, and how long the engine may wait for us from now on is set."""
    try:
        match transaction.dialect.name:
            case "postgresql":
                return limits.raise_on_postgres(transaction, name, fence, left)
            case "sqlite":
                transaction.run(fences.raise_to("sqlite"), {"name": name, "fence": fence})
                return int(_first(transaction.run(fences.look, {"of": name})))
            case _:
                return _raised_on_mysql(transaction, name, fence, left)
    except Exception as error:
        if limits.waited_too_long(error):
            raise FenceHeld(name) from error
        raise


def _raised_on_mysql(transaction: Transaction, name: str, fence: int, left: float) -> int:
    seconds = math.ceil(left)
    statement = limits.raise_on_mariadb(seconds) if transaction.mariadb else fences.raise_to("mysql")
    transaction.run(statement, {"name": name, "fence": fence})
    # A locking read sees what is committed now, whatever the isolation; the row is locked already.
    high = int(_first(transaction.run(fences.look_and_lock, {"of": name})))
    if transaction.mariadb and isinstance(transaction, OnSqlAlchemy):
        limits.end_when_idle(transaction.connection, seconds)
    return high


def _make_table(transaction: Transaction) -> None:
    """Make the table at first use; never inside the user's transaction where DDL would commit it."""
    if transaction.dialect.name == "sqlite":  # the only writer is us: another connection would wait for us
        transaction.run(fences.create)
        return
    engine = transaction.connection.engine if isinstance(transaction, OnSqlAlchemy) else None
    if engine in _made:
        return
    if not _first(transaction.run(fences.exists(transaction.dialect.name))):
        _make_apart(transaction)
    if engine is not None:
        _made.add(engine)


def _make_apart(transaction: Transaction) -> None:
    """Make the table on another connection; the open transaction may not see yet that it is there."""
    try:
        transaction.run_apart(fences.create)
    except Exception as error:
        # Of ten servers that make it at once, one does, and the others may be told that it is there.
        if not _first(transaction.run_apart(fences.exists(transaction.dialect.name))):
            raise _missing(transaction) from error


def _missing(transaction: Transaction) -> ConfigError:
    statement = " ".join(fences.ddl(transaction.dialect.name).split())  # an error is one line
    return ConfigError(
        f"the table {fences.table.name} is missing and could not be made; "
        f"let somebody who may do it: {statement}"
    )


def _first(row: Any) -> Any:
    return None if row is None else row[0]
