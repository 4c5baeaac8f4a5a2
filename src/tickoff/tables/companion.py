"""The companion: a table beside a user's that keeps states and results, when the user's must not change.

It has a row for each row of the user's that was found so far, under the same key, of the same types and
collations. Nothing refers to the user's table, so that rows may be removed there without asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from .base import Plan
from .finding import Found

_ROOM = 70
"""PostgreSQL's pages are filled so far: a change of state finds room beside the row, and touches no index."""

_ANSWER = sa.Text().with_variant(mysql.LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")


def table_of(
    connection: sa.Connection, users: Found, kept: Plan, tracking: Sequence[sa.Column[Any]]
) -> sa.Table:
    """The companion as it is made: the key of the user's table, what tracks the state, what is answered."""
    schema, dot, name = kept.table.rpartition(".")
    collations = _collations(connection, users, kept.key)
    key = [_like(column, users.columns[column]["type"], collations) for column in kept.key]
    options = {"postgresql_with": {"fillfactor": _ROOM}, **_charset(connection, users)}
    return sa.Table(
        name, sa.MetaData(), *key, *tracking, *results(kept), schema=schema if dot else None, **options
    )


def results(kept: Plan) -> list[sa.Column[Any]]:
    """Texts, unless the user makes them of another type first."""
    return [sa.Column(name, _ANSWER) for name in kept.result]


def _like(name: str, kind: Any, collations: dict[str, str]) -> sa.Column[Any]:
    if name in collations:
        kind = sa.String(getattr(kind, "length", None), collation=collations[name])
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _charset(connection: sa.Connection, users: Found) -> dict[str, Any]:
    """MySQL's columns that say nothing of their characters have those of their table."""
    if connection.dialect.name not in {"mysql", "mariadb"}:
        return {}
    told = sa.inspect(connection).get_table_options(users.name, schema=users.schema)
    same = {name: value for name, value in told.items() if name.endswith(("charset", "collate"))}
    return {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB", **same}


def _collations(connection: sa.Connection, users: Found, key: Sequence[str]) -> dict[str, str]:
    """SQLite's, of the index that makes the key unique; the other databases tell them with the types."""
    if connection.dialect.name != "sqlite":
        return {}
    quote = connection.dialect.identifier_preparer.quote
    place = f"{quote(users.schema)}." if users.schema else ""
    found: dict[str, str] = {}
    for index in connection.exec_driver_sql(f"PRAGMA {place}index_list({quote(users.name)})").all():
        parts = connection.exec_driver_sql(f"PRAGMA {place}index_xinfo({quote(index[1])})").all()
        collations = {part[2]: part[4] for part in parts if part[5]}
        if index[2] and collations.keys() == set(key):
            found |= {name: given for name, given in collations.items() if given != "BINARY"}
    return found
