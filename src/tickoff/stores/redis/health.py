"""What can be amiss with a Redis that keeps leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redis.exceptions import NoPermissionError

from ..base import Finding
from .connect import Client, RedisSource, evicting

OLDEST = (5, 0)
"""Before it, a script that has read the clock may not write."""

Information = dict[str, Any]


def examine(address: str, source: RedisSource, client: Client) -> list[Finding]:
    """The findings of all primaries, each kind once."""
    try:
        told = source.information(client)
    except NoPermissionError:
        return [_blind(address)]
    found = {finding.check: finding for info in told for look in _LOOKS for finding in look(address, info)}
    return list(found.values())


def _age(address: str, info: Information) -> Iterator[Finding]:
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        yield Finding(
            check="redis-version",
            what=f"{address} runs Redis {version}",
            danger="its scripts may not write once they have read the clock, so that every race fails",
            remedy=f"upgrade it to Redis {OLDEST[0]}.{OLDEST[1]} or newer",
        )


def _eviction(address: str, info: Information) -> Iterator[Finding]:
    policy = evicting(info)
    if policy is not None:
        yield Finding(
            check="redis-eviction",
            what=f"{address} evicts keys when its memory is full (maxmemory-policy {policy})",
            danger="locks and marks are among them: two servers can hold one name, a tick can run twice",
            remedy="set maxmemory-policy noeviction, or give Tickoff a Redis of its own",
        )


def _persistence(address: str, info: Information) -> Iterator[Finding]:
    if int(info.get("aof_enabled", 0)) == 0:
        yield Finding(
            check="redis-persistence",
            what=f"{address} keeps no append-only file",
            danger="a restart forgets leases, pauses and the history; a tick can run twice until a server "
            "that remembers has raced",
            remedy="set appendonly yes (redis-cli CONFIG SET appendonly yes, and CONFIG REWRITE)",
        )


def _replicas(address: str, info: Information) -> Iterator[Finding]:
    replicas = int(info.get("connected_slaves", 0))
    if replicas and int(info.get("min_slaves_good_slaves", 0)) == 0:
        yield Finding(
            check="redis-replicas",
            what=f"{address} has {_counted(replicas, 'replica')}, and grants leases without waiting for any",
            danger="a failover forgets the leases that were not copied yet: two servers can hold one name",
            remedy="set min-replicas-to-write 1 and a short min-replicas-max-lag, and guard what the work "
            "writes by its fence",
        )


def _role(address: str, info: Information) -> Iterator[Finding]:
    if info.get("role", "master") != "master":
        yield Finding(
            check="redis-role",
            what=f"{address} is a replica",
            danger="it takes no writes, so every race fails",
            remedy="name the primary in the URL, or the Sentinels: redis+sentinel://host:26379/service",
        )


def _blind(address: str) -> Finding:
    return Finding(
        check="redis-blind",
        what=f"{address} does not let this user see INFO",
        danger="eviction, persistence and replication cannot be checked, and a Redis that evicts loses locks",
        remedy="allow it: ACL SETUSER <user> +info",
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_LOOKS: tuple[Callable[[str, Information], Iterator[Finding]], ...] = (
    _age,
    _role,
    _eviction,
    _persistence,
    _replicas,
)
