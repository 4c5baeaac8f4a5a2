"""Check-ins as a watchdog receives them, over HTTP."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tickoff.errors import ConfigError
from tickoff.integrations.checkins import ping, sentry

if TYPE_CHECKING:
    from tests.integrations.conftest import Shop

Received = list[tuple[str, str, dict[str, str], str]]
"""Verb, path, query and body of each request."""


class Watchdog(HTTPServer):
    """Takes down what it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.received: Received = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Taker(BaseHTTPRequestHandler):
    server: Watchdog

    def _take(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.received.append((self.command, parts.path, query, body))
        self.send_response(200)
        self.end_headers()

    do_GET = do_POST = _take  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    made = Watchdog()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what()


def test_a_watchdog_is_pinged_at_the_start_and_by_how_it_ended(shop: Shop, watchdog: Watchdog) -> None:
    """Start and end of a run carry the same identifier; a failure says why. Other jobs are not told of."""
    ping(shop.jobs, "good", f"{watchdog.url}/ping/g/")
    ping(shop.jobs, "bad", f"{watchdog.url}/ping/b")
    with shop.run():
        until(lambda: {"/ping/g", "/ping/b/fail"} <= {path for _, path, _, _ in watchdog.received})
    good = [(path, query["rid"]) for _, path, query, _ in watchdog.received if path.startswith("/ping/g")]
    assert [path for path, _ in good[:2]] == ["/ping/g/start", "/ping/g"]
    assert good[0][1] == good[1][1]
    (bad, *_) = [body for _, path, _, body in watchdog.received if path == "/ping/b/fail"]
    assert bad == "ValueError: out of stock"


def test_sentry_is_told_that_a_run_is_in_progress_and_how_it_ended(shop: Shop, watchdog: Watchdog) -> None:
    """By plain requests to the project's ingest, as its DSN says."""
    dsn = watchdog.url.replace("http://", "http://thekey@") + "/42"
    sentry(shop.jobs, "bad", dsn, slug="bad-job")
    with shop.run():
        until(lambda: len(watchdog.received) >= 2)
    (verb, path, first, _), (_, _, second, _) = watchdog.received[:2]
    assert (verb, path) == ("GET", "/api/42/cron/bad-job/thekey/")
    assert (first["status"], second["status"]) == ("in_progress", "error")
    assert first["check_in_id"] == second["check_in_id"]


def test_a_watchdog_that_is_away_delays_nothing_and_is_logged_without_its_secret(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """The address of a check is what lets others ping it."""
    ping(shop.jobs, "good", "http://127.0.0.1:1/secret")
    with caplog.at_level(logging.WARNING, "tickoff"), shop.run():
        until(lambda: any("could not be told of a run" in record.message for record in caplog.records))
    assert "secret" not in caplog.text


def test_an_address_that_is_none_is_refused_at_once(shop: Shop) -> None:
    """Not when the first tick is due."""
    with pytest.raises(ConfigError, match="is no web address"):
        ping(shop.jobs, "good", "ftp://host/x")
    with pytest.raises(ConfigError, match="the DSN cannot be read"):
        sentry(shop.jobs, "good", "https://host/1", slug="x")
