"""Records in users' own tables: opened by a database and a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Plan, RecordTable

if TYPE_CHECKING:
    import sqlalchemy as sa

LIMIT = 30.0
"""Seconds one statement may take: a wrap-around over ten million rows needs some."""


def open_table(target: str | sa.Engine, plan: Plan, limit: float = LIMIT) -> RecordTable:
    """The records of a plan in a database given by URL or Engine; connects to nothing yet."""
    from ..stores.sql.engines import database_of
    from .table import SqlRecordTable

    return SqlRecordTable(database_of(target), plan, limit)
