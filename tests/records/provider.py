"""An HTTP API with a hard limit of calls a second, which can be down, and which counts what came when."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tests.records.api import Api


class Provider(Api):
    """`GET /PHONE`: 200, 429 for a call that is more than the limit allows in any second, 503 while down."""

    def __init__(self, latency: float, limit: int | None = None) -> None:
        super().__init__(latency)
        self.limit = limit
        self.down = False
        self.accepted: list[float] = []
        self.refused: list[float] = []
        self.failed: list[float] = []
        self._second: deque[float] = deque()

    def rate(self, start: float, end: float) -> float:
        """Calls accepted a second between two instants."""
        return sum(start <= at < end for at in self.accepted) / (end - start)

    def _answer(self, phone: str) -> bytes:
        self.asked[phone] += 1
        if self.down:
            self.failed.append(time.monotonic())
            return _response("503 Service Unavailable", b"")
        if not self._admitted(time.monotonic()):
            return _response("429 Too Many Requests", b"")
        self.paid[phone] += 1
        return _response("200 OK", b'"yes"')

    def _admitted(self, now: float) -> bool:
        """A sliding window: the strictest way to count."""
        while self._second and self._second[0] <= now - 1.0:
            self._second.popleft()
        if self.limit is not None and len(self._second) >= self.limit:
            self.refused.append(now)
            return False
        self._second.append(now)
        self.accepted.append(now)
        return True


def _response(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def provider(latency: float, limit: int | None = None) -> Iterator[Provider]:
    """The API, running."""
    running = Provider(latency, limit)
    running.start()
    try:
        yield running
    finally:
        running.stop()
