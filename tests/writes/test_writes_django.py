"""Guarded transactions on a real Django's connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import ConnectionHandler, transaction
from django.utils.connection import ConnectionProxy

from tests.databases import url_of_empty
from tickoff import StaleFence, Tickoff, upsert, writes
from tickoff.errors import ConfigError, FenceHeld

ENGINES = {"sqlite": "sqlite3", "postgres": "postgresql", "mariadb": "mysql"}


@pytest.fixture(scope="module", autouse=True)
def configured() -> None:
    """Django wants settings, if only empty ones; PyMySQL stands in for its MySQL driver."""
    import pymysql

    pymysql.version_info = (2, 2, 8, "final", 0)  # what Django asks of mysqlclient
    pymysql.install_as_MySQLdb()
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()


@pytest.fixture(params=list(ENGINES))
def connections(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Django's handler of connections, with two to one empty database."""
    url = url_of_empty(request.param, request, tmp_path)
    options = {"timeout": 1} if request.param == "sqlite" else {}
    one = {
        "ENGINE": f"django.db.backends.{ENGINES[request.param]}",
        "NAME": url.database,
        "HOST": url.host or "",
        "PORT": str(url.port or ""),
        "USER": url.username or "",
        "OPTIONS": options,
    }
    handler = ConnectionHandler({"default": one, "other": dict(one)})
    yield handler
    for connection in handler.all():
        connection.close()


@pytest.fixture
def atomic(monkeypatch: pytest.MonkeyPatch, connections: Any) -> Any:
    """`transaction.atomic`, on these connections."""
    monkeypatch.setattr("django.db.connections", connections)
    monkeypatch.setattr(transaction, "get_connection", lambda using=None: connections[using or "default"])
    return transaction.atomic


def test_an_atomic_block_is_guarded(connections: Any, atomic: Any) -> None:
    """The table is made, the older holder is refused, and what it wrote is rolled back."""
    db = connections["default"]
    with atomic():
        writes.guard(db, "a", 2, 60.0)
        with db.cursor() as cursor:
            cursor.execute("CREATE TABLE t (x integer)")
    with pytest.raises(StaleFence), atomic():  # noqa: PT012 - what was written before is rolled back
        with db.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES (1)")
        writes.guard(db, "a", 1, 60.0)
    with db.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM t), (SELECT fence FROM tickoff_fence)")
        assert cursor.fetchone() == (0, 2)


def test_without_an_atomic_block_it_is_refused(connections: Any) -> None:
    """Django commits every statement then."""
    with pytest.raises(ConfigError, match="atomic"):
        writes.guard(connections["default"], "a", 1, 60.0)


def test_the_taker_gives_up_waiting(connections: Any, atomic: Any) -> None:
    """Django's wrapping of the driver's error hides nothing."""
    with atomic():
        writes.guard(connections["default"], "a", 1, 60.0)
    with atomic(), pytest.raises(FenceHeld), atomic("other"):  # noqa: PT012 - both are open at once
        writes.guard(connections["default"], "a", 2, 60.0)
        writes.guard(connections["other"], "a", 3, 1.0)


def test_a_lease_guards_djangos_proxy(connections: Any, atomic: Any) -> None:
    """`django.db.connection` is a stand-in for the thread's connection."""
    jobs = Tickoff("memory://")
    with jobs.lock("import-products") as lease, atomic():
        lease.guard(ConnectionProxy(connections, "default"))
    jobs.close()


def test_upsert_and_transaction_name_djangos_own_way(connections: Any) -> None:
    """Rows by key are Django's business there."""
    with pytest.raises(ConfigError, match="bulk_create"):
        upsert(connections["default"], "t", [{"id": 1}], key="id")
    with pytest.raises(ConfigError, match="atomic"), writes.begun(connections["default"]):
        pass
