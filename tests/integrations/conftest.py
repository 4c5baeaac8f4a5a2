"""An application that runs a good and a bad job at once, and one by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tickoff import Tickoff


class Shop:
    """An application of two jobs, and the means to let them run for a while."""

    def __init__(self) -> None:
        self.jobs = Tickoff("memory://", namespace="shop")
        self.jobs.every("1s", name="good")(self._good)
        self.jobs.every("1s", name="bad")(self._bad)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Serve until both have run, and been told of."""
        ended: list[str] = []
        self.jobs.on("ended", lambda event: ended.append(event.job))
        with self.jobs:
            deadline = time.monotonic() + 30
            while len(set(ended)) < 2 and time.monotonic() < deadline:
                time.sleep(0.02)
            yield

    def _good(self) -> None:
        time.sleep(0.01)

    def _bad(self) -> None:
        raise ValueError("out of stock")


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.jobs.close()
