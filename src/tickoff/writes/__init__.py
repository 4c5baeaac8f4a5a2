"""Writes to the user's own database: fenced against late holders, and repeatable by a stable key.

Nothing here is imported before it is used: a program that writes nothing pays for no SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy.orm import Session, scoped_session

    from .connections import DjangoConnection

    Writable: TypeAlias = sa.Connection | Session | scoped_session[Any]
    Guardable: TypeAlias = Writable | DjangoConnection


def guard(db: Guardable, name: str, fence: int, left: float) -> None:
    """Raise the high-water fence of a name in the transaction open on `db`, or refuse with `StaleFence`.

    `left` is how many seconds the lease is still good for.
    """
    from .guarding import guard as guarded

    guarded(db, name, fence, left)


def begun(engine: sa.Engine) -> AbstractContextManager[sa.Connection]:
    """A transaction on a connection of the engine; what is no Engine is refused with the remedy."""
    from .connections import begun as begin

    return begin(engine)


def upsert(
    db: Writable,
    table: str | sa.Table | type[Any],
    rows: Iterable[Mapping[str, Any]],
    *,
    key: str | tuple[str, ...],
) -> int:
    """Insert the rows, or update those whose `key` is there; says how many it was given, commits nothing.

    Rows that are there with the same values are left alone, so that a repeated import changes nothing.
    """
    from .upserting import upsert as upserted

    return upserted(db, table, rows, key)


def ddl(dialect: str) -> str:
    """The statement that makes the table of fences, for a dialect, connecting to nothing."""
    from .fence import ddl as printed

    return printed(dialect)
