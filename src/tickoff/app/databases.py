"""In which database the users' tables lie: the one named, or the store's own when that is SQL."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ConfigError

_SQL = ("postgres", "postgresql", "mysql", "mariadb", "sqlite")


def check_database(database: Any) -> None:
    """Refuse early what cannot be a database; the text itself is not repeated, it may hold a password."""
    if database is None or _is_sql(database):
        return
    what = "an URL that is" if isinstance(database, str) else f"a {type(database).__name__}, which is"
    raise ConfigError(
        f"database: {what} no database for records and writes; pass one with postgresql://, mysql://, "
        "mariadb:// or sqlite:///, or an SQLAlchemy Engine"
    )


def database_target(database: Any, store: Any) -> Any:
    """The URL or Engine of the database; refused when the store is none and no other is named."""
    for target in (database, os.environ.get("TICKOFF_DATABASE"), store, os.environ.get("TICKOFF_URL")):
        if target and (target is database or _is_sql(target)):
            return target
    raise ConfigError(
        'records need the database with your table; name it: Tickoff(..., database="postgresql://…"), '
        "or set TICKOFF_DATABASE"
    )


def _is_sql(target: Any) -> bool:
    if isinstance(target, str):
        return target.partition("://")[0].partition("+")[0] in _SQL
    return any(base.__module__ == "sqlalchemy.engine.base" for base in type(target).__mro__)
