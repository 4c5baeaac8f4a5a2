"""The stores that chaos befalls: how each is reached, and what can be done to it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis
from dev.proxy import Mode, Proxy, proxy_to
from dev.servers import Server, mariadb_server, postgres_server, redis_server

Blow = Callable[[], None]


@dataclass
class Store:
    """A store under chaos."""

    urls: list[str]
    """How members reach it; more than one, so that a partition cuts off some."""
    proxies: list[Proxy] = field(default_factory=list)
    blows: dict[str, Blow] = field(default_factory=dict)
    """What can be done to the store itself."""
    forgets: bool = False
    """Whether a blow makes it lose acknowledged data."""
    records: str = ""
    """The database of the records, reached directly by those who look on."""


@contextmanager
def sqlite(folder: Path) -> Iterator[Store]:
    """A file: there is no server, and no network."""
    yield Store([f"sqlite:///{folder}/store.db"], records=f"sqlite:///{folder}/store.db")


@contextmanager
def redis_durable(_folder: Path) -> Iterator[Store]:
    """A Redis that writes everything to its file before it answers."""
    with ExitStack() as stack:
        server = stack.enter_context(redis_server("--appendonly", "yes", "--appendfsync", "always"))
        yield _behind_proxies(stack, server, {"restart": lambda: _restart(server, signal.SIGKILL)})


@contextmanager
def redis_forgetful(_folder: Path) -> Iterator[Store]:
    """A Redis without persistence: a restart loses everything."""
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        store = _behind_proxies(
            stack, server, {"restart, all is lost": lambda: _restart(server, signal.SIGKILL)}
        )
        store.forgets = True
        yield store


@contextmanager
def redis_failover(_folder: Path) -> Iterator[Store]:
    """A primary and a replica; clients are moved to the replica, which misses the latest writes."""
    with ExitStack() as stack:
        pair = [stack.enter_context(redis_server()) for _ in range(2)]
        redis.Redis(port=pair[1].port).replicaof("127.0.0.1", pair[0].port)
        store = _behind_proxies(stack, pair[0], {})
        store.blows["failover, the last writes are lost"] = lambda: _fail_over(store, pair)
        store.forgets = True
        yield store


@contextmanager
def postgres(_folder: Path) -> Iterator[Store]:
    """A PostgreSQL that is restarted at once, and loses its connections."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        store = _behind_proxies(stack, server, {"restart": lambda: _restart(server, signal.SIGQUIT)})
        store.records = server.url
        yield store


@contextmanager
def mariadb(_folder: Path) -> Iterator[Store]:
    """A MariaDB that is killed; what it acknowledged was with the operating system."""
    with ExitStack() as stack:
        server = stack.enter_context(mariadb_server("--innodb-flush-log-at-trx-commit=2"))
        store = _behind_proxies(stack, server, {"restart": lambda: _restart(server, signal.SIGKILL)})
        store.records = server.url
        yield store


STORES = {
    "sqlite": sqlite,
    "redis": redis_durable,
    "forgetful": redis_forgetful,
    "failover": redis_failover,
    "postgres": postgres,
    "mariadb": mariadb,
}


def _behind_proxies(stack: ExitStack, server: Server, blows: dict[str, Blow]) -> Store:
    proxies = [stack.enter_context(proxy_to(server.port)) for _ in range(2)]
    urls = [server.url.replace(f":{server.port}/", f":{proxy.port}/") for proxy in proxies]
    return Store(urls, proxies, blows)


def _restart(server: Server, how: signal.Signals) -> None:
    server.stop(how)
    server.start()


def _fail_over(store: Store, pair: list[Server]) -> None:
    """The replica stops following, half a second of writes is lost to it, and then it is the primary."""
    old, new = (redis.Redis(port=server.port) for server in pair)
    new.replicaof("NO", "ONE")
    time.sleep(0.5)
    for proxy in store.proxies:
        proxy.target = ("127.0.0.1", pair[1].port)
        proxy.reset()
    old.replicaof("127.0.0.1", pair[1].port)
    pair.reverse()


def heal(store: Store) -> None:
    """The network is well again."""
    for proxy in store.proxies:
        proxy.mode, proxy.delay = Mode.PASS, 0.0
