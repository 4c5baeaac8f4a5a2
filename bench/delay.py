"""A forwarder in a process of its own that makes every round trip to a server longer by a set time.

A thread beside the measured code would share its GIL; a process does not. `select` waits by the
microsecond, where epoll's time-outs, as asyncio uses them, are rounded up to whole milliseconds.
"""

from __future__ import annotations

import asyncio
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import redis

_PINGS = 400
_ATTEMPTS = 4


@dataclass(frozen=True)
class Delayed:
    """Where the forwarder listens, and what a round trip costs with and without it, in seconds."""

    port: int
    direct: float
    through: float


@contextmanager
def delayed_redis(port: int, wanted: float) -> Iterator[Delayed]:
    """A forwarder to this Redis, tuned until a PING takes `wanted` seconds longer than without."""
    command = [sys.executable, __file__, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            own_port = int(process.stdout.readline()) if process.stdout else 0
            yield _tuned(port, own_port, wanted, lambda delay: _say(process, delay))
        finally:
            process.terminate()


def _tuned(port: int, own_port: int, wanted: float, tell: Callable[[float], None]) -> Delayed:
    with redis.Redis(port=port) as plain, redis.Redis(port=own_port) as delayed:
        delay = wanted / 2
        for _ in range(_ATTEMPTS):
            tell(delay)
            direct, through = _pings(plain, delayed)
            delay = max(0.0, delay + (wanted - (through - direct)) / 2)
        tell(delay)
        return Delayed(own_port, *_pings(plain, delayed))


def _pings(plain: redis.Redis, delayed: redis.Redis) -> tuple[float, float]:
    """The median PING of each, taken in turns."""
    pairs = [(_ping(plain), _ping(delayed)) for _ in range(_PINGS)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _ping(client: redis.Redis) -> float:
    begun = perf_counter()
    client.ping()
    return perf_counter() - begun


def _say(process: subprocess.Popen[str], delay: float) -> None:
    if process.stdin:
        process.stdin.write(f"{delay}\n")
        process.stdin.flush()


class _Late(asyncio.Protocol):
    """One end of a connection: what it receives is written to the other end a while later."""

    def __init__(self, settings: dict[str, float]) -> None:
        self._settings = settings
        self.other: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def join(self, other: asyncio.Transport) -> None:
        self.other = other
        for data in self._early:
            other.write(data)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            asyncio.get_running_loop().call_later(self._settings["delay"], self.other.write, data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self.other is not None:
            self.other.close()


class _Accepted(_Late):
    """The client's end: opens the server's end."""

    def __init__(self, settings: dict[str, float], port: int) -> None:
        super().__init__(settings)
        self._port = port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connecting = asyncio.ensure_future(self._connect(transport))

    async def _connect(self, client: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        server, end = await loop.create_connection(lambda: _Late(self._settings), "127.0.0.1", self._port)
        end.join(client)  # type: ignore[arg-type] # a TCP transport reads and writes
        self.join(server)


async def _forward(port: int) -> None:
    loop, settings = asyncio.get_running_loop(), {"delay": 0.0}
    server = await loop.create_server(lambda: _Accepted(settings, port), "127.0.0.1", 0)
    loop.add_reader(sys.stdin, lambda: _read_delay(settings))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _read_delay(settings: dict[str, float]) -> None:
    line = sys.stdin.readline()
    if not line:  # whoever measures is gone
        raise SystemExit
    settings["delay"] = float(line)


if __name__ == "__main__":
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())
    ) as forwarder:
        forwarder.run(_forward(int(sys.argv[1])))
