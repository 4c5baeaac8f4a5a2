"""Other people's APIs: a supplier with pages of products, a provider of numbers that often fails."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, dict[str, str], Any]


class Provider:
    """An HTTP API on a free port."""

    url: str

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        """Status, headers and JSON."""
        raise NotImplementedError


P = TypeVar("P", bound=Provider)


@contextmanager
def served(provider: P) -> Iterator[P]:
    """The API, answering."""

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            link = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(link.query).items()}
            status, headers, said = provider.answer(link.path.removeprefix("/"), query)
            body = json.dumps(said).encode()
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1024  # a connection that finds the queue full may stay silent for half a minute

    server = Server(("127.0.0.1", 0), Requests)
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


class Supplier(Provider):
    """`GET /products`: ninety products on three pages, of which ten change from one import to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.first_pages: list[dict[str, str]] = []
        """What was asked for with each first page: one for each import begun."""

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        """A page; of what has changed, if there is a `since`."""
        page = int(query["page"])
        with self.lock:
            if page == 1:
                self.first_pages.append(query)
            round_ = len(self.first_pages)
        if "since" in query:
            return 200, {}, {"products": products(range(10), round_), "next_page": None}
        rows = products(range(30 * (page - 1), 30 * page), round_)
        return 200, {}, {"products": rows, "next_page": page + 1 if page < 3 else None}


def products(numbers: range, round_: int) -> list[dict[str, Any]]:
    """Products as the supplier has them by then."""
    return [{"id": n, "name": f"product {n}", "cents": 100 + round_} for n in numbers]


class Lookup(Provider):
    """`GET /NUMBER`: a fifth of the first requests fail; some numbers are unknown, some have no result."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        """How often each number was answered, which is what the bill says."""
        self.broke = False

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        """What the number gets this time."""
        number = int(path.removeprefix("n"))
        with self.lock:
            self.asked[path] += 1
            asked = self.asked[path]
            if self.broke:
                return 402, {}, None
            if number % 10 in (3, 7) and asked == 1:
                return (503, {}, None) if number % 10 == 3 else (429, {"Retry-After": "1"}, None)
            if number % 50 == 9:
                return 404, {}, None
            self.paid[path] += 1
        return 200, {}, {"aadhaar_number": None if number % 20 == 5 else f"a{number:011}"}
