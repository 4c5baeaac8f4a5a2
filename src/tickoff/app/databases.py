"""In which database the users' tables lie: the one named, or the store's own when that is SQL."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ConfigError

_SQL = ("postgres", "postgresql", "mysql", "mariadb", "sqlite")


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
