"""A TCP proxy that misbehaves on demand: it holds, delays or drops what passes, or resets connections."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class Mode(StrEnum):
    """What the proxy does with bytes."""

    PASS = "pass"
    HOLD = "hold"  # a black hole: connections stand, nothing passes either way, no hanging up either
    DROP_REPLIES = "drop replies"  # requests arrive, their answers do not
    REFUSE = "refuse"  # connections are reset


class Proxy:
    """Listens on a port of its own and forwards to one server on this machine."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.target = ("127.0.0.1", port)
        self._listener = socket.create_server((host, 0))
        self.port = int(self._listener.getsockname()[1])
        self.mode = Mode.PASS
        self.delay = 0.0
        """Seconds by which requests arrive later; they arrive even if their sender hung up meanwhile."""
        self.drop_after = b""
        """Replies are dropped from the request on that contains this; empty: never."""
        self.hold_after = b""
        """The same, but from then on nothing passes at all: the client has vanished."""
        self._sockets: set[socket.socket] = set()
        self._open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening and reset all connections."""
        self._open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def reset(self) -> None:
        """Reset all connections there are."""
        for one in list(self._sockets):
            self._hang_up(one)

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.mode is Mode.REFUSE:
                self._hang_up(client)
                continue
            try:
                server = socket.create_connection(self.target)
            except OSError:  # the server is down: its clients are told so, as they would be without us
                self._hang_up(client)
                continue
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets |= {client, server}
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._replies, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        while data := self._receive(client):
            delay = self.delay
            if delay:
                time.sleep(delay)
            self._held()
            if self.drop_after and self.drop_after in data:
                self.mode, self.drop_after = Mode.DROP_REPLIES, b""
            if self.hold_after and self.hold_after in data:
                self.mode, self.hold_after = Mode.HOLD, b""
            with contextlib.suppress(OSError):
                server.sendall(data)
        self._held()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)  # gently: what was sent last must arrive first

    def _replies(self, server: socket.socket, client: socket.socket) -> None:
        while data := self._receive(server):
            self._held()
            if self.mode is Mode.DROP_REPLIES:
                continue
            with contextlib.suppress(OSError):
                client.sendall(data)
        self._hang_up(client)

    def _held(self) -> None:
        while self.mode is Mode.HOLD and self._open:
            time.sleep(0.01)

    def _receive(self, one: socket.socket) -> bytes:
        try:
            return one.recv(65536)
        except OSError:
            return b""

    def _hang_up(self, one: socket.socket) -> None:
        self._sockets.discard(one)
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextmanager
def proxy_to(port: int, host: str = "127.0.0.1") -> Iterator[Proxy]:
    """A proxy in front of a port of this machine, listening at `host`."""
    proxy = Proxy(port, host)
    try:
        yield proxy
    finally:
        proxy.close()
