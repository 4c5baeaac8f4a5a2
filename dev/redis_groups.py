"""Redis servers that belong together: the nodes of a Cluster, and Sentinels that watch a primary."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import redis

from .servers import Server, answers_ping, free_port, installed, own_folder, redis_server, running

_SLOTS = 16384
_JOIN_LIMIT = 30.0


@contextmanager
def redis_cluster(
    *options: str, ports: Sequence[int] = (), faces: Sequence[tuple[str, int]] = ()
) -> Iterator[list[Server]]:
    """Three nodes that share the names; `faces` are the addresses under which clients are sent to them."""
    ports = ports or [free_port() for _ in range(3)]
    faces = faces or [("127.0.0.1", port) for port in ports]
    buses = [free_port() for _ in ports]
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(redis_server(*options, *_node(*face, bus), port=port))
            for port, face, bus in zip(ports, faces, buses, strict=True)
        ]
        for i, (node, bus) in enumerate(zip(nodes, buses, strict=True)):
            first, last = _SLOTS * i // len(nodes), _SLOTS * (i + 1) // len(nodes) - 1
            redis.Redis(port=node.port).execute_command("CLUSTER ADDSLOTSRANGE", first, last)
            redis.Redis(port=nodes[0].port).execute_command("CLUSTER MEET", "127.0.0.1", node.port, bus)
        _wait_until_joined(nodes)
        yield nodes


@contextmanager
def sentinel_server(
    service: str, primary: Server, *, host: str = "127.0.0.1", inside: Sequence[str] = (), quorum: int = 1
) -> Iterator[Server]:
    """A Sentinel that calls the primary dead after a second of silence."""
    with own_folder() as folder:
        port, config = free_port(), folder / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind {host}\nprotected-mode no\ndir {folder}\n"
            f"sentinel monitor {service} {primary.host} {primary.port} {quorum}\n"
            f"sentinel down-after-milliseconds {service} 1000\n"
            f"sentinel failover-timeout {service} 3000\n"
        )
        command = [*inside, installed("redis-server"), str(config), "--sentinel"]
        url = f"redis+sentinel://{host}:{port}/{service}"
        server = Server("sentinel", url, port, command, folder, lambda: answers_ping(host, port), host=host)
        yield from running(server)


def _node(host: str, port: int, bus: int) -> list[str]:
    told = {"enabled": "yes", "node-timeout": "2000", "port": str(bus)}
    told |= {"announce-ip": host, "announce-port": str(port), "announce-bus-port": str(bus)}
    bind = ["--bind", *dict.fromkeys(["127.0.0.1", host])]
    return bind + [word for name, value in told.items() for word in (f"--cluster-{name}", value)]


def _wait_until_joined(nodes: Sequence[Server]) -> None:
    deadline = time.monotonic() + _JOIN_LIMIT
    while not all(_joined(node, len(nodes)) for node in nodes):
        if time.monotonic() > deadline:
            raise TimeoutError("the nodes of the Cluster did not find each other")
        time.sleep(0.05)


def _joined(node: Server, size: int) -> bool:
    told = redis.Redis(port=node.port, decode_responses=True).execute_command("CLUSTER INFO")
    return bool(told["cluster_state"] == "ok" and told["cluster_known_nodes"] == str(size))
