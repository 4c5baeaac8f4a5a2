"""The stores that chaos befalls, by the names under which they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from . import on_redis, on_sql
from .ground import Ground
from .store import Store

STORES: dict[str, Callable[[Ground], AbstractContextManager[Store]]] = {
    "sqlite": on_sql.sqlite,
    "redis": on_redis.durable,
    "forgetful": on_redis.forgetful,
    "failover": on_redis.failover,
    "sentinel": on_redis.sentinel,
    "cluster": on_redis.cluster,
    "postgres": on_sql.postgres,
    "mariadb": on_sql.mariadb,
}

NEED_MACHINES = ("sentinel",)
"""Those that make no sense on one machine."""

CANNOT = 77
"""The exit status when a store cannot be put up here; other test programs say so, too."""
