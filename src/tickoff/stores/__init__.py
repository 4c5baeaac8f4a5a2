"""Where leases live: one small protocol (`base`), and the stores that keep it.

A URL's scheme picks the store, and only that store is imported: `redis://`, `rediss://`,
`redis+sentinel://`, `redis+cluster://`, `postgresql://`, `mysql://`, `mariadb://`, `sqlite:///`,
`memory://`. A store of one's own is an object that passes `tickoff.testing.contract`: `Tickoff(MyStore())`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ConfigError
from .base import LeaseStore


def open_store(target: Any) -> LeaseStore:
    """The store for an URL, an Engine, a redis.Redis client, or a store itself; it connects at first use."""
    if isinstance(target, str):
        return _opener(target)(target)
    if isinstance(target, LeaseStore):
        return target
    family = _family(target)
    if family is None:
        raise ConfigError(
            f"{type(target).__name__} is no store; pass a URL such as redis://localhost:6379/0, "
            "an SQLAlchemy Engine, a redis.Redis client or an object with the methods of LeaseStore"
        )
    return family(target)


def _opener(url: str) -> Callable[[Any], LeaseStore]:
    scheme, separator, _ = url.partition("://")
    opener = _OPENERS.get(scheme.partition("+")[0]) if separator else None
    if opener is None or (opener is _open_redis and scheme not in _REDIS_SCHEMES):
        wrong = f"the URL scheme {scheme!r} is unknown" if separator else "the URL has no scheme"
        raise ConfigError(f"{wrong}; use one of {', '.join(_SCHEMES)}")
    return opener


def _family(target: Any) -> Callable[[Any], LeaseStore] | None:
    """How to open a client object: told by its class's ancestors, so that nothing is imported to ask."""
    modules = [ancestor.__module__ for ancestor in type(target).__mro__]
    if any(module.startswith(("redis.asyncio", "sqlalchemy.ext.asyncio")) for module in modules):
        raise ConfigError(
            f"an async {type(target).__name__} was given; Tickoff does its I/O in threads of its own and "
            "serves async callers from there, so pass the URL, a sync Engine or a sync redis.Redis"
        )
    if "redis.cluster" in modules:
        raise ConfigError(
            "a RedisCluster object was given; pass its nodes as redis+cluster://host:port,host:port"
        )
    if "redis.client" in modules:
        return _open_redis
    return _open_sql if "sqlalchemy.engine.base" in modules else None


def _open_redis(target: Any) -> LeaseStore:
    try:
        from .redis.connect import source_of
        from .redis.store import RedisStore
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is missing; run: pip install 'tickoff[redis]'") from error
    return RedisStore(source_of(target))


def _open_sql(target: Any) -> LeaseStore:
    from .sql.engines import source_of
    from .sql.store import SqlStore

    source = source_of(target)
    if source.driver == "psycopg":
        try:
            from .sql.postgres import PostgresStore
        except ModuleNotFoundError as error:
            raise ConfigError(f"{error.name} is missing; run: pip install 'tickoff[postgres]'") from error
        return PostgresStore(source)
    return SqlStore(source)


def _open_memory(target: str) -> LeaseStore:
    from .memory import MemoryStore

    if target != "memory://":
        raise ConfigError("the URL of the memory store is memory:// and nothing else; leave out what follows")
    return MemoryStore()


_REDIS_SCHEMES = ("redis", "rediss", "redis+sentinel", "redis+cluster")
_SCHEMES = (
    *(f"{scheme}://" for scheme in _REDIS_SCHEMES),
    *("postgresql://", "mysql://", "mariadb://", "sqlite:///", "memory://"),
)
_OPENERS: dict[str, Callable[[Any], LeaseStore]] = {
    "redis": _open_redis,
    "rediss": _open_redis,
    "postgres": _open_sql,
    "postgresql": _open_sql,
    "mysql": _open_sql,
    "mariadb": _open_sql,
    "sqlite": _open_sql,
    "memory": _open_memory,
}
