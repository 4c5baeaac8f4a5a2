"""A store under test, with hands on what it keeps: to let time pass without waiting, to make it forget."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..model import Entry
from ..stores.base import LeaseStore
from ..stores.memory import MemoryStore

if TYPE_CHECKING:
    from ..stores.redis.store import RedisStore
    from ..stores.sql.store import SqlStore

_AGEING = ("taken", "until", "barrier", "used", "outcome_at")
"""The instants of an entry that lie further back once time has passed; marks and fences are no such."""


@dataclass(frozen=True)
class Subject:
    """A store, and two ways to lay hands on what it keeps of a name.

    `age(name, ms)` rewrites the entry as if that time had passed (see `aged`; moving a clock would age the
    marks along with it), `forget(name)` drops it as a store does that lost its data.
    """

    store: LeaseStore
    age: Callable[[str, int], None]
    forget: Callable[[str], None]


def memory_subject() -> Subject:
    """The reference store, aged by rewriting its entries."""
    store = MemoryStore()

    def age(name: str, ms: int) -> None:
        store.rewrite(name, lambda entry: aged(entry, ms))

    return Subject(store, age, store.lose)


def sql_subject(store: SqlStore) -> Subject:
    """A SQL store, aged by rewriting its rows."""
    import sqlalchemy as sa

    from ..stores.sql import schema

    row = schema.lease.c

    def age(name: str, ms: int) -> None:
        older = {field: sa.case((row[field] > ms, row[field] - ms), else_=0) for field in _AGEING}
        with store.connection() as connection:
            tombs = connection.execute(sa.select(row.withdrawn).where(row.name == name)).scalar() or "[]"
            later = [(token, until - ms) for token, until in json.loads(tombs)]
            change = sa.update(schema.lease).where(row.name == name)
            connection.execute(change.values(**older, withdrawn=json.dumps(later) if later else ""))

    def forget(name: str) -> None:
        with store.connection() as connection:
            connection.execute(sa.delete(schema.lease).where(row.name == name))
            connection.execute(sa.delete(schema.run).where(schema.run.c.name == name))

    return Subject(store, age, forget)


def redis_subject(store: RedisStore) -> Subject:
    """A Redis store, aged by rewriting its keys."""

    def age(name: str, ms: int) -> None:
        client: Any = store.client
        meta = f"tickoff:{{lock:{name}}}"
        stored = client.get(meta)
        if stored is not None:
            values = json.loads(stored)
            older = values | {field: max(0, values[field] - ms) for field in _AGEING if field in values}
            left = client.pttl(meta)
            client.set(meta, json.dumps({field: value for field, value in older.items() if value}))
            _expire(client, meta, left, ms)
        for key in [f"lock:{name}", *client.keys(f"{meta}:withdrawn:*")]:
            _expire(client, key, client.pttl(key), ms)

    def forget(name: str) -> None:
        client: Any = store.client
        meta = f"tickoff:{{lock:{name}}}"
        for key in [f"lock:{name}", *client.keys(f"{meta}*")]:
            client.delete(key)

    return Subject(store, age, forget)


def aged(entry: Entry, ms: int) -> Entry:
    """The entry as if `ms` had passed since: for the `age` of stores that keep entries whole."""
    older: dict[str, Any] = {field: max(0, getattr(entry, field) - ms) for field in _AGEING}
    tombs = tuple((token, until - ms) for token, until in entry.withdrawn)
    return replace(entry, withdrawn=tombs, **older)


def _expire(client: Any, key: Any, left: int, ms: int) -> None:
    if left > ms:
        client.pexpire(key, left - ms)
    elif left >= 0:
        client.delete(key)


def comparable(entry: Entry, now: int) -> dict[str, Any]:
    """What two stores must agree on: not fences, versions, absolute times or memories of tokens."""
    plain = replace(
        entry, version=0, fence=0, taken=0, used=0, outcome_at=0, steered=0, withdrawn=(), let_go=""
    )
    if not entry.live(now) and not entry.tick:  # what is left of a plain lock that is over means nothing
        plain = replace(plain, token="", owner="")
    fields = {name: getattr(plain, name) for name in Entry.__slots__}
    live = entry.live(now)
    fields["until"] = round((entry.until - now) / 5000) if live else 0
    fields["barrier"] = entry.barrier > now
    return fields
