"""How the servers reach the world outside: by HTTP, as they would a mail provider or a paid API."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

from ...errors import Defer, LeaseLost, Reject, StaleFence
from ...ticks.tick import Tick
from .journal import Seen

ADDRESS = "TICKOFF_DEMO_API"
SERVER = "TICKOFF_DEMO_SERVER"

_PATIENCE = 60.0


def mail_naively() -> None:
    """An email of a server that asks nobody."""
    _post(Seen(what="naive", server=_server()))


def mail(tick: Tick) -> None:
    """The email of a tick."""
    _post(_of(tick, "email"))


def fetch_products(tick: Tick) -> list[dict[str, Any]]:
    """The provider's products; it takes its time, and notes who asks."""
    _post(_of(tick, "begun"))
    status, body = _ask("GET", "/products")
    if status != 200:
        raise OSError(f"the provider answered {status}")
    products: list[dict[str, Any]] = json.loads(body)
    return products


def confess(tick: Tick, refusal: StaleFence | LeaseLost) -> None:
    """Tell that a late write was refused, and by which fence."""
    high = refusal.high if isinstance(refusal, StaleFence) else 0
    _post(_of(tick, "refused", high=high))


def number_of(phone: str) -> str:
    """The paid call. An overloaded provider is no fault of the row; one it does not know is given up."""
    status, body = _ask("GET", f"/contacts/{quote(phone)}?server={_server()}")
    match status:
        case 503:
            raise Defer(after="300ms", why="503 from the provider")
        case 404:
            raise Reject("404: nobody has this number")
    return body.decode()


def _of(tick: Tick, what: str, high: int = 0) -> Seen:
    at = round(tick.at.timestamp() * 1000)
    job = tick.job.rpartition(":")[2]
    return Seen(
        what=what, server=_server(), job=job, tick=at, fence=tick.fence, attempt=tick.attempt, high=high
    )


def _post(seen: Seen) -> None:
    status, _ = _ask("POST", "/", seen.line())
    if status != 200:
        raise OSError(f"the world outside answered {status}")


def _ask(method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection = HTTPConnection(os.environ[ADDRESS], timeout=_PATIENCE)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _server() -> int:
    return int(os.environ[SERVER])
