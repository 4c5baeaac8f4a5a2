"""The world outside, a process of its own: a mail provider, a slow shop, a slow and flaky paid API.

It logs what arrives, and knows nothing of Tickoff. Run as `python -m tickoff.cli.demo.api LOG`; it says its
port, and exits when its input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TextIO
from urllib.parse import parse_qs, unquote, urlsplit
from zlib import crc32

from .journal import Seen

SHOP_TAKES = 2.0
"""Seconds the shop takes to list its products."""

CALL_TAKES = 0.08
"""Seconds a call of the paid API takes."""


class Outside(ThreadingHTTPServer):
    """Listens on a free port of the loopback."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, log: TextIO) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self._log = log
        self._guard = threading.Lock()
        self._asked: Counter[str] = Counter()

    def note(self, seen: Seen) -> None:
        """Log it, in one line and one write."""
        with self._guard:
            self._log.write(f"{replace(seen, at=time.time_ns() // 1_000_000).line()}\n")

    def times_asked(self, phone: str) -> int:
        """How often this number was asked for, this time included."""
        with self._guard:
            self._asked[phone] += 1
            return self._asked[phone]


class Asked(BaseHTTPRequestHandler):
    """One request."""

    server: Outside

    def do_POST(self) -> None:
        """An email, or another sign of life."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.note(Seen.read(body.decode()))
        self._answer(200)

    def do_GET(self) -> None:
        """The shop's products, or a call that is paid for."""
        url = urlsplit(self.path)
        if url.path == "/products":
            time.sleep(SHOP_TAKES)
            self._answer(200, json.dumps([{"id": 1, "name": "lamp"}, {"id": 2, "name": "chair"}]))
        else:
            self._look_up(unquote(url.path.rpartition("/")[2]), int(parse_qs(url.query)["server"][0]))

    def _look_up(self, phone: str, server: int) -> None:
        time.sleep(CALL_TAKES)
        status, number = _mood(phone, self.server.times_asked(phone))
        self.server.note(Seen(what="call", server=server, phone=phone, status=status, number=number))
        self._answer(status, number)

    def _answer(self, status: int, text: str = "") -> None:
        body = text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # whoever asked was killed meanwhile

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so called by http.server
        """Our own log is enough."""


def _mood(phone: str, times: int) -> tuple[int, str]:
    """One in ten is told to come back later when first asked for; one in a hundred is not known."""
    mood = crc32(phone.encode()) % 100
    if mood < 10 and times == 1:
        return 503, ""
    return (404, "") if mood == 99 else (200, f"A-{phone[::-1]}")


def main() -> None:
    """Serve until stdin ends."""
    with open(sys.argv[1], "a", encoding="utf-8", buffering=1) as log:  # noqa: PTH123 - one line, one write
        outside = Outside(log)
        threading.Thread(target=outside.serve_forever, daemon=True).start()
        sys.stdout.write(f"127.0.0.1:{outside.server_port}\n")
        sys.stdout.flush()
        sys.stdin.read()
        os._exit(0)  # what is being answered is for nobody


if __name__ == "__main__":
    main()
