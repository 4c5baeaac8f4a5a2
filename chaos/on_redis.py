"""Redis in the forms people run it: one that persists, one that forgets, replicas, Sentinels, a Cluster."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import redis
from dev.proxy import Proxy, proxy_to
from dev.redis_groups import redis_cluster, sentinel_server
from dev.servers import Server, free_port, postgres_server, redis_server

from .ground import Ground, Machine
from .store import Blow, Store, Undo, behind_proxies, full_disk, on_the_way, partition, restart

_DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


@contextmanager
def durable(ground: Ground) -> Iterator[Store]:
    """A Redis that writes everything to its file before it answers."""
    disk = ground.disk(64)
    with ExitStack() as stack:
        server = stack.enter_context(redis_server(*_DURABLE, disk=disk.folder))
        store = behind_proxies(stack, ground, server)
        store.seldom = {
            "restart": restart([server], signal.SIGKILL, disk),
            **_on(server),
            **full_disk(disk, server),
        }
        _add_records(stack, ground, store)
        yield store


@contextmanager
def forgetful(ground: Ground) -> Iterator[Store]:
    """A Redis without persistence: a restart loses everything."""
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        store = behind_proxies(stack, ground, server)
        store.seldom = {"restart, all is lost": restart([server], signal.SIGKILL), **_on(server)}
        store.forgets = True
        _add_records(stack, ground, store)
        yield store


@contextmanager
def failover(ground: Ground) -> Iterator[Store]:
    """A primary and a replica; clients are moved to the replica, which misses the latest writes."""
    with ExitStack() as stack:
        pair = [stack.enter_context(redis_server()) for _ in range(2)]
        redis.Redis(port=pair[1].port).replicaof("127.0.0.1", pair[0].port)
        proxies = [stack.enter_context(proxy_to(pair[0].port, ground.host)) for _ in range(2)]
        urls = [f"redis://{ground.host}:{proxy.port}/0" for proxy in proxies]
        store = Store(urls, often=on_the_way(ground, proxies), machines=ground.machines)
        store.seldom = {"failover, the last writes are lost": _fail_over(proxies, pair)}
        store.forgets = True
        _add_records(stack, ground, store)
        yield store


@contextmanager
def sentinel(ground: Ground) -> Iterator[Store]:
    """Three machines: a primary, a replica, and a Sentinel on each; they elect when the primary is gone.

    Members run beside them. Those on the primary's machine go on writing to it while it is cut off, and
    all of that is lost: the replica has become the primary meanwhile.
    """
    machines = ground.machines
    with ExitStack() as stack:
        pair = [
            stack.enter_context(redis_server(host=one.address, port=6379, inside=one.inside))
            for one in machines[:2]
        ]
        _redis(pair[1]).replicaof(pair[0].host, pair[0].port)
        watchers = [
            stack.enter_context(
                sentinel_server("shop", pair[0], host=one.address, inside=one.inside, quorum=2)
            )
            for one in machines
        ]
        hosts = ",".join(f"{one.host}:{one.port}" for one in watchers)
        store = Store([f"redis+sentinel://{hosts}/shop"], machines=machines, forgets=True)
        store.pace, store.lasting = (12, 18), (4, 8)
        addresses = [one.address for one in machines]
        store.often = {"partition": partition(machines, *addresses)}
        store.seldom = {
            "the primary is cut off, its writes are lost": _cut_off_primary(watchers[2], machines),
            "the primary dies before it was copied": _kill_primary(watchers[2], pair, machines),
        }
        store.counts = lambda: {"elections": _elections(watchers)}
        _wait_until_they_know_each_other(watchers)
        _add_records(stack, ground, store)
        yield store


@contextmanager
def cluster(ground: Ground) -> Iterator[Store]:
    """Three nodes that keep a third of the names each; without replicas, so a dead one is waited for."""
    with ExitStack() as stack:
        ports = [free_port() for _ in range(3)]
        proxies = [stack.enter_context(proxy_to(port, ground.host)) for port in ports]
        faces = [(ground.host, proxy.port) for proxy in proxies]
        nodes = stack.enter_context(redis_cluster(*_DURABLE, ports=ports, faces=faces))
        hosts = ",".join(f"{host}:{port}" for host, port in faces)
        store = Store([f"redis+cluster://{hosts}"], machines=ground.machines)
        store.often = on_the_way(ground, proxies)
        store.seldom = {"a node is restarted": restart(nodes, signal.SIGKILL)}
        _add_records(stack, ground, store)
        yield store


def _add_records(stack: ExitStack, ground: Ground, store: Store) -> None:
    """Redis keeps no records: they are in a PostgreSQL, to which nothing happens but on the way there."""
    server = stack.enter_context(postgres_server())
    proxy = stack.enter_context(proxy_to(server.port, ground.host))
    store.records = server.url
    store.database = server.url.replace(f"{server.host}:{server.port}", f"{ground.host}:{proxy.port}")


def _on(server: Server) -> dict[str, Blow]:
    return {"connections killed": _kill_connections(server), "no memory left": _starve(server)}


def _kill_connections(server: Server) -> Blow:
    def strike(_whom: int, _length: float) -> None:
        _redis(server).client_kill_filter(_type="normal", skipme=True)

    return strike


def _starve(server: Server) -> Blow:
    """Redis refuses what would need memory."""

    def strike(_whom: int, _length: float) -> Undo:
        _redis(server).config_set("maxmemory", 1)
        return lambda: _feed(server)

    return strike


def _feed(server: Server) -> None:
    with suppress(redis.ConnectionError):  # it was restarted, and has forgotten its limit
        _redis(server).config_set("maxmemory", 0)


def _fail_over(proxies: list[Proxy], pair: list[Server]) -> Blow:
    """The replica stops following, half a second of writes is lost to it, and then it is the primary."""

    def strike(_whom: int, _length: float) -> None:
        old, new = (_redis(server) for server in pair)
        new.replicaof("NO", "ONE")
        time.sleep(0.5)
        for proxy in proxies:
            proxy.target = ("127.0.0.1", pair[1].port)
            proxy.reset()
        old.replicaof("127.0.0.1", pair[1].port)
        pair.reverse()

    return strike


def _cut_off_primary(watcher: Server, machines: tuple[Machine, ...]) -> Blow:
    """For as long as an election takes, and longer."""

    def strike(_whom: int, _length: float) -> Undo:
        address = _primary(watcher)
        alone = next(one for one in machines if one.address == address)
        alone.cut_off(*(one.address for one in machines if one is not alone))
        return alone.join

    return strike


def _kill_primary(watcher: Server, pair: list[Server], machines: tuple[Machine, ...]) -> Blow:
    """What it acknowledged in the half second before had not yet reached the replica."""

    def strike(_whom: int, _length: float) -> Undo:
        address = _primary(watcher)
        dying = next(server for server in pair if server.host == address)
        alone = next(one for one in machines if one.address == address)
        alone.cut_off(*(server.host for server in pair if server is not dying))
        time.sleep(0.5)
        dying.stop(signal.SIGKILL)
        alone.join()
        return dying.start

    return strike


def _primary(watcher: Server) -> str:
    with _redis(watcher) as asking:
        return str(asking.sentinel_get_master_addr_by_name("shop")[0])


def _know_all(watchers: list[Server]) -> bool:
    told = [_told(watcher) for watcher in watchers]
    return all(one["num-slaves"] == 1 and one["num-other-sentinels"] == 2 for one in told)


def _elections(watchers: list[Server]) -> int:
    return max(int(_told(watcher)["config-epoch"]) for watcher in watchers)


def _told(watcher: Server) -> dict[str, Any]:
    with _redis(watcher) as asking:
        told: dict[str, Any] = asking.sentinel_master("shop")
        return told


def _redis(server: Server) -> redis.Redis:
    return redis.Redis(host=server.host, port=server.port, socket_timeout=5, decode_responses=True)


def _wait_until_they_know_each_other(watchers: list[Server]) -> None:
    deadline = time.monotonic() + 30
    while not _know_all(watchers):
        if time.monotonic() > deadline:
            raise TimeoutError("the Sentinels did not find each other")
        time.sleep(0.1)
