"""What the servers of the tests do with a contact, and the program that they run."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from http.client import HTTPConnection
from typing import Any

from tickoff import Defer, Tickoff

POISON = 777


def answer(row: Any) -> str:
    """At once."""
    return f"a{row.id}"


def slow(row: Any) -> str:
    """After a while."""
    time.sleep(0.05)
    return f"a{row.id}"


def very_slow(row: Any) -> str:
    """After a long while."""
    time.sleep(1.0)
    return f"a{row.id}"


def stuck(row: Any) -> str:
    """After the first twenty it hangs."""
    if row.id > 20:
        time.sleep(60)
    return f"a{row.id}"


def poison(row: Any) -> str:
    """One of them kills the process that works it."""
    if row.id == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"a{row.id}"


_connections = threading.local()


def lookup(contact: Any) -> str | None:
    """Ask the API of tests.records.api."""
    connection = getattr(_connections, "mine", None)
    if connection is None:
        connection = _connections.mine = HTTPConnection(os.environ["SHOP_API"], timeout=30)
    connection.request("GET", f"/{contact.phone_number}")
    response = connection.getresponse()
    body = response.read()
    if response.status == 429:
        raise Defer("20ms", "too many requests")
    if response.status != 200:
        raise RuntimeError(f"the API said {response.status}")
    found: str | None = json.loads(body)
    return found


def limited(contact: Any) -> str:
    """Ask the API of tests.records.provider."""
    connection = getattr(_connections, "mine", None)
    if connection is None:
        connection = _connections.mine = HTTPConnection(os.environ["SHOP_API"], timeout=30)
    connection.request("GET", f"/{contact.phone}")
    response = connection.getresponse()
    body = response.read()
    if response.status == 429:
        raise Defer("100ms", "too many requests")
    if response.status != 200:
        raise RuntimeError(f"the API said {response.status}")
    found: str = json.loads(body)
    return found


def limited_batch(contacts: list[Any]) -> list[str]:
    """The same for several in one call."""
    return [limited(contact) for contact in contacts]


def main() -> None:
    """Run one pass, or serve until told to stop; say at the end what was done."""
    if os.environ.get("TICKOFF_PLANT"):
        from tests.planted import apply_from_environment

        apply_from_environment()
    told = json.loads(sys.argv[1])
    jobs = Tickoff(told["url"], namespace=told["table"], grace="20s")
    defaults = {"status": "status", "result": "answer", "backoff": "20ms", "ttl": "5s", "name": "enrich"}
    jobs.each(told["table"], **{**defaults, **told["options"]})(globals()[told["work"]])
    if told["verb"] == "serve":
        jobs.serve()
        return
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    print(json.dumps(asdict(jobs.records("enrich").run(stop=stop))))
    jobs.close()


if __name__ == "__main__":
    main()
