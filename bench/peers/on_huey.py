"""huey, on Redis or SQLite: 4 threads, no results kept, an idle worker asks again after 10 ms."""

from __future__ import annotations

from huey import RedisHuey, SqliteHuey

from bench.peers import gate
from bench.peers.program import url

huey = (
    SqliteHuey(filename=url().removeprefix("sqlite:///"), results=False)
    if url().startswith("sqlite")
    else RedisHuey(url=url(), results=False)
)


@huey.task()
def noop() -> None:
    """Nothing."""


def fill(count: str) -> None:
    """Enqueue so many."""
    huey.flush()
    for _ in range(int(count)):
        noop()


gate.wait()
