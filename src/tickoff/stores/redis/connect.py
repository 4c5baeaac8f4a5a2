"""From an URL or a user's client to a client of our own: no hidden retries, bounded, its own connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.connection import ConnectionPool, parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from ...errors import ConfigError
from .urls import check_server, parts_of

Client = redis.Redis | redis.RedisCluster


class RedisSource(Protocol):
    """Something that opens clients to one Redis."""

    @property
    def address(self) -> str:
        """Where it is, without the password."""
        ...

    def open(self, limit: float) -> Client:
        """A client with connections of its own, which answer or fail within `limit` seconds."""
        ...

    def teach(self, client: Client, script: str) -> None:
        """Make the script known wherever it may run."""
        ...

    def eviction(self, client: Client) -> str | None:
        """The policy by which keys would be evicted, None when they would not."""
        ...

    def information(self, client: Client) -> list[dict[str, Any]]:
        """What INFO says, of each primary."""
        ...

    def time(self, client: Client) -> int:
        """The clock, in milliseconds."""
        ...


class _OneServer:
    """What a single server and a Sentinel's primary have in common."""

    def teach(self, client: Client, script: str) -> None:
        """Make the script known."""
        client.script_load(script)

    def eviction(self, client: Client) -> str | None:
        """The policy by which keys would be evicted, None when they would not."""
        return evicting(client.info("memory"))

    def information(self, client: Client) -> list[dict[str, Any]]:
        """What INFO says."""
        return [client.info()]

    def time(self, client: Client) -> int:
        """The clock, in milliseconds."""
        return _milliseconds(client.time())


@dataclass(frozen=True)
class UrlSource(_OneServer):
    """One server, named by an URL."""

    url: str = field(repr=False)

    @property
    def address(self) -> str:
        """Scheme, host, port and database."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def check(self) -> None:
        """Refuse options that a connection would not take; connects to nothing."""
        check_server(parts_of(self.url))
        pool = self.open(1.0).connection_pool
        try:
            pool.connection_class(**pool.connection_kwargs)
        except (TypeError, ValueError, redis.RedisError):
            raise self._wrong_option() from None

    def _wrong_option(self) -> ConfigError:
        """Named without its value, which may be a part of a password, and so without the driver's words."""
        names = ", ".join(name for name, _ in parse_qsl(urlsplit(self.url).query)) or "none"
        return ConfigError(
            f"the URL of {self.address} cannot be read: it has an unknown option, or a wrong one; "
            f"its options are: {names}"
        )

    def open(self, limit: float) -> redis.Redis:
        """A client for the URL."""
        try:
            options = parse_url(self.url)
        except ValueError:
            raise self._wrong_option() from None
        return redis.Redis(connection_pool=ConnectionPool(**_bounded(options, limit)))


@dataclass(frozen=True)
class ClientSource(_OneServer):
    """A user's client: connected the way the user connects, from a pool of our own."""

    client: redis.Redis = field(repr=False)

    @property
    def address(self) -> str:
        """Host and port, as far as the client's pool tells them."""
        options = self.client.connection_pool.connection_kwargs
        if "path" in options:
            return f"unix://{options['path']}"
        if isinstance(self.client.connection_pool, SentinelConnectionPool):
            return f"redis+sentinel:///{self.client.connection_pool.service_name}"
        where = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        return f"redis://{where}/{options.get('db') or 0}"

    def open(self, limit: float) -> redis.Redis:
        """A client that connects as the user's does."""
        pool = self.client.connection_pool
        options = _bounded(pool.connection_kwargs, limit)
        options["protocol"] = pool.connection_kwargs.get(
            "protocol"
        )  # the user's other options may depend on it
        options.pop("connection_pool", None)
        if isinstance(pool, SentinelConnectionPool):
            own: ConnectionPool = SentinelConnectionPool(
                pool.service_name, pool.sentinel_manager, connection_class=pool.connection_class, **options
            )
        else:
            own = ConnectionPool(connection_class=pool.connection_class, **options)
        return redis.Redis(connection_pool=own)


@dataclass(frozen=True)
class SentinelSource(_OneServer):
    """The primary that a group of Sentinels names."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    options: dict[str, Any] = field(repr=False)
    sentinel_options: dict[str, Any] = field(repr=False)

    @property
    def address(self) -> str:
        """The Sentinels and the service."""
        return f"redis+sentinel://{_listed(self.hosts)}/{self.service}"

    def open(self, limit: float) -> redis.Redis:
        """A client that follows the primary."""
        asking = _bounded(self.sentinel_options, limit)
        sentinels = Sentinel(list(self.hosts), sentinel_kwargs=asking)
        client: redis.Redis = sentinels.master_for(self.service, **_bounded(self.options, limit))
        return client


@dataclass(frozen=True)
class ClusterSource:
    """A Redis Cluster, found through any of its nodes."""

    hosts: tuple[tuple[str, int], ...]
    options: dict[str, Any] = field(repr=False)

    @property
    def address(self) -> str:
        """The nodes that were named."""
        return f"redis+cluster://{_listed(self.hosts)}"

    def open(self, limit: float) -> redis.RedisCluster:
        """A client that knows which node keeps which name."""
        nodes = [ClusterNode(host, port) for host, port in self.hosts]
        return redis.RedisCluster(startup_nodes=nodes, **_bounded(self.options, limit))

    def teach(self, client: Client, script: str) -> None:
        """Make the script known to every primary."""
        client.execute_command("SCRIPT LOAD", script, target_nodes=redis.RedisCluster.PRIMARIES)

    def eviction(self, client: Client) -> str | None:
        """The policy of the first node that would evict."""
        told = client.info("memory", target_nodes=redis.RedisCluster.PRIMARIES)
        return next(filter(None, map(evicting, _each(told))), None)

    def information(self, client: Client) -> list[dict[str, Any]]:
        """What INFO says, of each primary."""
        return _each(client.info(target_nodes=redis.RedisCluster.PRIMARIES))

    def time(self, client: Client) -> int:
        """The clock of one of the nodes, in milliseconds."""
        return _milliseconds(client.time(target_nodes=redis.RedisCluster.RANDOM))


def source_of(target: str | redis.Redis) -> RedisSource:
    """Where to keep leases, for an URL or a client."""
    if not isinstance(target, str):
        return ClientSource(target)
    match parts_of(target).scheme:
        case "redis+sentinel":
            return _sentinel(target)
        case "redis+cluster":
            return _cluster(target)
        case _:
            source = UrlSource(target)
            source.check()
            return source


def _sentinel(url: str) -> SentinelSource:
    parts = parts_of(url)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ConfigError(
            "the Sentinel URL names no service; write redis+sentinel://host1:26379,host2:26379/service"
        )
    options = _credentials(parts.netloc) | ({"db": _number(database, "database")} if database else {})
    query = dict(parse_qsl(parts.query))
    asking = {
        key.removeprefix("sentinel_"): query.pop(key)
        for key in ("sentinel_username", "sentinel_password")
        if key in query
    }
    _refuse_options(query, "sentinel_username, sentinel_password")
    return SentinelSource(_hosts(parts.netloc, 26379), service, options, asking)


def _cluster(url: str) -> ClusterSource:
    parts = parts_of(url)
    query = dict(parse_qsl(parts.query))
    ssl = _yes_or_no(query.pop("ssl", "false"))
    _refuse_options(query, "ssl")
    if parts.path.strip("/"):
        raise ConfigError(
            "a Redis Cluster has one database only; leave out what follows the hosts in the URL"
        )
    return ClusterSource(
        _hosts(parts.netloc, 6379), _credentials(parts.netloc) | ({"ssl": True} if ssl else {})
    )


def _yes_or_no(text: str) -> bool:
    if text.lower() not in {"1", "true", "yes", "0", "false", "no"}:
        raise ConfigError(
            "the option ssl of the URL is neither true nor false; write ssl=true, or leave it out"
        )
    return text.lower() in {"1", "true", "yes"}


def _refuse_options(query: dict[str, str], known: str) -> None:
    if query:
        raise ConfigError(f"the URL has unknown options ({', '.join(query)}); known are: {known}")


def _credentials(netloc: str) -> dict[str, Any]:
    user, _, password = netloc.rpartition("@")[0].partition(":")
    named = {"username": unquote(user), "password": unquote(password)}
    return {key: value for key, value in named.items() if value}


def _hosts(netloc: str, port: int) -> tuple[tuple[str, int], ...]:
    listed = [part for part in netloc.rpartition("@")[2].split(",") if part]
    if not listed:
        raise ConfigError("the URL names no host; write one or more as host:port,host:port")
    return tuple(_host(part, port) for part in listed)


def _host(text: str, default: int) -> tuple[str, int]:
    bracketed, _, rest = text.rpartition("]")
    host, _, port = rest.partition(":")
    return (bracketed.lstrip("[") or host), _number(port, "port") if port else default


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal()):  # not shown: it may be a part of the password
        raise ConfigError(
            f"the {what} in the URL is not a number; write digits only, and %2F for a / in a password"
        )
    return int(text)


def _listed(hosts: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{host}:{port}" for host, port in hosts)


def _bounded(options: dict[str, Any], limit: float) -> dict[str, Any]:
    """The options with what our promises need: no retries behind our back, answers in time, bytes, RESP2."""
    given = [options.get(name) or limit for name in ("socket_timeout", "socket_connect_timeout")]
    return options | {
        "socket_timeout": min(given[0], limit),
        "socket_connect_timeout": min(given[1], limit),
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": False,
        "protocol": 2,
        "max_connections": 1000,
    }


def _each(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of several nodes, or that of the only one."""
    return list(told.values()) if all(isinstance(part, dict) for part in told.values()) else [told]


def evicting(memory: dict[str, Any]) -> str | None:
    """The policy by which a server would evict keys, None when it would not."""
    policy = str(memory.get("maxmemory_policy", "noeviction"))
    return policy if int(memory.get("maxmemory", 0)) > 0 and policy != "noeviction" else None


def _milliseconds(told: tuple[int, int]) -> int:
    return int(told[0]) * 1000 + int(told[1]) // 1000
