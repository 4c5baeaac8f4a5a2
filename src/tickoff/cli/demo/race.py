"""The race itself: ten servers, some rounds, and a verdict from their logs."""

from __future__ import annotations

import secrets
import tempfile
import time
from pathlib import Path

from ...errors import ConfigError
from ...names import check_namespace, full_name
from ...stores import open_store
from ..interrupts import ending_tidily, held_back
from .fleet import Fleet
from .show import Show
from .verdict import Round, Turn, Verdict, count

SERVERS = 10
ROUNDS = 12

_NOTICE = 0.05
"""Seconds between telling the racers a start instant and the instant itself, so that all are in step."""


def race_of_ten(url: str | None, namespace: str | None, show: Show) -> Verdict:
    """Race on the given store, or on a SQLite file that is gone afterwards."""
    with ending_tidily(), tempfile.TemporaryDirectory(prefix="tickoff-demo-") as made:
        folder = Path(made)
        target = url or f"sqlite:///{folder / 'tickoff.db'}"
        name = f"demo-{secrets.token_hex(4)}"  # its own, so that two demos on one store do not meet
        address = _reached(target, full_name(check_namespace(namespace), name))
        show.opening(SERVERS, ROUNDS, address if url else "a temporary SQLite file")
        _run(Fleet(SERVERS, name, folder, target, namespace), show)
        verdict = count(folder, SERVERS, ROUNDS)
    show.closing(verdict)
    return verdict


def _reached(url: str, name: str) -> str:
    """Where the store is; a wrong URL or a dead server is told here, once, and not by ten processes."""
    if url.startswith("memory:"):
        raise ConfigError(
            "memory:// is seen by one process only and the demo starts ten; leave --url out, or name a server"
        )
    store = open_store(url)
    try:
        store.read([name])
    finally:
        store.close()
    return store.address


def _run(fleet: Fleet, show: Show) -> None:
    try:
        with held_back():
            fleet.start()
        fleet.hear()  # all are up and connected
        with show.rounds():
            for number in range(1, ROUNDS + 1):
                show.round(_round(fleet, number))
    finally:
        with held_back():
            fleet.stop()


def _round(fleet: Fleet, number: int) -> Round:
    """Everybody races at one instant; the winner holds on until the last one was told off."""
    fleet.tell(f"{number} {time.monotonic() + _NOTICE}")
    turns = [Turn.read(line) for line in fleet.hear()]
    fleet.tell("over")
    fleet.hear()
    return Round(number, turns)
