"""Real servers for the tests: private, started once per test process, ended with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
from dev.servers import MissingServer, Server, mariadb_server, postgres_server, redis_server

from tests.planted import apply_from_environment
from tickoff import Tickoff

apply_from_environment()

STORES = ("memory", "sqlite", "redis", "postgres", "mariadb")
SHARED_STORES = STORES[1:]
"""Those that more than one process can use."""

Started = TypeVar("Started")

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest come first, so that none of them is left over for the end."""
    items.sort(key=_time_allowed, reverse=True)


def _time_allowed(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


def start(server: Callable[[], AbstractContextManager[Started]]) -> Iterator[Started]:
    """Start a server, or skip what needs it; in CI a missing server is a failure."""
    context = server()
    try:
        running = context.__enter__()
    except MissingServer as error:
        if IN_CI:
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield running
    context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    """A Redis shared by the tests of this process: use names of your own, and never FLUSHALL."""
    yield from start(redis_server)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL shared by the tests of this process."""
    yield from start(postgres_server)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """A MariaDB shared by the tests of this process."""
    yield from start(mariadb_server)


@pytest.fixture
def url_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The URL of a store by its short name; starts the server at first use."""

    def url(kind: str) -> str:
        if kind == "memory":
            return "memory://"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/tickoff.db"
        server: Server = request.getfixturevalue(kind)
        return server.url

    return url


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, url_of: Callable[[str], str]) -> str:
    """The URL of each store in turn."""
    return url_of(request.param)


@pytest.fixture(params=SHARED_STORES)
def shared_url(request: pytest.FixtureRequest, url_of: Callable[[str], str]) -> str:
    """The URL of each store that many processes can share."""
    return url_of(request.param)


@pytest.fixture
def jobs(url: str) -> Iterator[Tickoff]:
    """A Tickoff on each store in turn."""
    made = Tickoff(url)
    yield made
    made.close()


@pytest.fixture
def name() -> str:
    """A name nobody has used."""
    return f"test-{uuid4().hex}"
