"""Takes the demo's traces from a store that may be somebody's: all of them bear a mark of its own."""

from __future__ import annotations

import sqlalchemy as sa

from ...errors import StoreUnreachable
from ...stores.base import LeaseStore
from ...stores.sql import schema
from ...stores.sql.engines import source_of
from ...tables.ledger import ledger
from ...writes import fence

_LIMIT = 5.0


def forget(store: LeaseStore, url: str, mark: str) -> None:
    """Delete what the store keeps under names with this mark."""
    if url.partition(":")[0].startswith("redis"):
        _forget_keys(store, mark)
    else:
        _forget_rows(url, mark)


def _forget_keys(store: LeaseStore, mark: str) -> None:
    import redis

    from ...stores.redis.store import RedisStore

    if not isinstance(store, RedisStore):
        return
    try:
        for key in store.client.scan_iter(match=f"*{mark}*", count=1000):
            store.client.delete(key)
    except redis.RedisError as error:
        raise StoreUnreachable(f"{store.address} went away; what bears {mark} stays in it") from error


def _forget_rows(url: str, mark: str) -> None:
    """The first column of each of our tables is the name that its row is about."""
    engine = source_of(url).open(_LIMIT)
    try:
        with engine.connect() as connection:
            there = set(sa.inspect(connection).get_table_names())
            for table in (schema.lease, schema.run, schema.note, fence.table, ledger):
                if table.name in there:
                    about = next(iter(table.primary_key.columns))
                    connection.execute(sa.delete(table).where(about.like(f"%{mark}%")))
    finally:
        engine.dispose()
