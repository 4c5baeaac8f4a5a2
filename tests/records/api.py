"""An HTTP API of a provider, slow and moody, that counts how often it was asked for whom."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Api:
    """`GET /PHONE`: a number, null for some; 429 and 503 for some when they are asked for first."""

    def __init__(self, latency: float) -> None:
        self.asked: Counter[str] = Counter()
        """All requests, by phone."""
        self.paid: Counter[str] = Counter()
        """Those that were answered with a result."""
        self.serving = 0
        """How many requests are being answered."""
        self._latency = latency
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        """host:port."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    @property
    def repeated(self) -> int:
        """How many paid answers were asked for again."""
        return sum(count - 1 for count in self.paid.values())

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._server.close()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                await self._think()
                writer.write(self._answer(request.split()[1].decode().strip("/")))
                await writer.drain()
        except ConnectionError:
            pass  # its server was killed
        finally:
            writer.close()

    async def _think(self) -> None:
        self.serving += 1
        try:
            await asyncio.sleep(self.latency(self.serving))
        finally:
            self.serving -= 1

    def latency(self, _serving: int) -> float:
        """Seconds that an answer takes, while so many are being given."""
        return self._latency

    def _answer(self, phone: str) -> bytes:
        self.asked[phone] += 1
        mood = sum(phone.encode()) % 20
        if self.asked[phone] == 1 and mood in {3, 4}:
            return _response("429 Too Many" if mood == 3 else "503 Unavailable", b"")
        self.paid[phone] += 1
        return _response("200 OK", json.dumps(None if mood == 7 else f"n{phone[1:]}").encode())


def _response(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def api(latency: float) -> Iterator[Api]:
    """The API, running."""
    running = Api(latency)
    running.start()
    try:
        yield running
    finally:
        running.stop()
