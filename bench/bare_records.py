"""Claim-and-complete by hand, as one would write it over the driver: the yardstick for records."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import psycopg
import sqlalchemy as sa

Cycle = Callable[[], int]
"""One batch claimed and completed; how many records that were."""

_PLANS = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
_CLAIM = (
    "WITH p AS (SELECT id FROM {t} WHERE status = 'PENDING' AND id > %s ORDER BY id LIMIT {size} "
    "FOR UPDATE SKIP LOCKED) UPDATE {t} c SET status = 'IN_FLIGHT', claim = %s, "
    "until = now() + interval '60 s' FROM p WHERE c.id = p.id RETURNING c.id, c.phone, c.answer"
)
_COMPLETE = (
    "UPDATE {t} c SET status = 'DONE', answer = g.a, until = now() "
    "FROM unnest(%s::bigint[], %s::text[]) g(id, a) WHERE c.id = g.id AND c.status = 'IN_FLIGHT' "
    "AND c.claim = %s"
)


def on_postgres(url: str, table: str, size: int) -> Cycle:
    """Two autocommit statements, prepared, with the plans pinned."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(_PLANS)
    claim, complete = (text.format(t=table, size=size) for text in (_CLAIM, _COMPLETE))
    floor = 0

    def cycle() -> int:
        nonlocal floor
        token = secrets.token_hex(16)
        ids = [row[0] for row in connection.execute(claim, (floor, token)).fetchall()]
        floor = max(ids, default=floor)
        connection.execute(complete, (ids, ["ok"] * len(ids), token))
        return len(ids)

    return cycle


def on_others(engine: sa.Engine, table: str, size: int) -> Cycle:
    """SQLite and MariaDB: lock the rows, flip them by their keys, commit; complete each by its key."""
    raw: Any = engine.raw_connection()
    cursor = raw.cursor()
    mark, begin = ("?", "BEGIN IMMEDIATE") if engine.dialect.name == "sqlite" else ("%s", "BEGIN")
    lock = "" if engine.dialect.name == "sqlite" else " FOR UPDATE SKIP LOCKED"
    rest = f"WHERE status = 'PENDING' AND id > {mark} ORDER BY id LIMIT {size}{lock}"
    select = f"SELECT id, phone, answer FROM {table} {rest}"
    flip = f"UPDATE {table} SET status = 'IN_FLIGHT', claim = {mark} WHERE id IN ({{marks}})"
    complete = (
        f"UPDATE {table} SET status = 'DONE', answer = {mark} "
        f"WHERE id = {mark} AND status = 'IN_FLIGHT' AND claim = {mark}"
    )
    floor = 0

    def cycle() -> int:
        nonlocal floor
        token = secrets.token_hex(16)
        cursor.execute(begin)
        cursor.execute(select, (floor,))
        ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            cursor.execute("COMMIT")
            return 0
        floor = ids[-1]
        cursor.execute(flip.format(marks=", ".join([mark] * len(ids))), (token, *ids))
        cursor.execute("COMMIT")
        cursor.execute(begin)
        cursor.executemany(complete, [("ok", key, token) for key in ids])
        cursor.execute("COMMIT")
        return len(ids)

    return cycle
