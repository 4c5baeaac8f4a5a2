"""Workers start together: each says that it is ready, all wait for the word. Booting is not measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

PLACE = "BENCH_GATE"
"""The environment's word for the folder of the gate; without it, nobody waits."""

_PATIENCE = 60.0


def wait() -> None:
    """In a worker, once all is imported: ready; go on when told so."""
    place = os.environ.pop(PLACE, None)
    if place is not None:
        (Path(place) / f"ready-{os.getpid()}").touch()
        _until(lambda: (Path(place) / "go").exists())


def open_for(place: Path, workers: int) -> None:
    """In the measuring process: let them go once so many are ready."""
    _until(lambda: len(list(place.glob("ready-*"))) >= workers)
    (place / "go").touch()


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("a worker did not get ready in time")
        time.sleep(0.002)
