"""Databases of a user's own for the tests: an Engine per kind, with nothing in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

DATABASES = ("sqlite", "postgres", "mariadb")

_DRIVERS = {"postgres": "postgresql+psycopg", "mariadb": "mysql+pymysql"}


@contextmanager
def database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[sa.Engine]:
    """An Engine on an empty database of this kind."""
    engine = sa.create_engine(url_of_empty(kind, request, folder))
    try:
        yield engine
    finally:
        engine.dispose()


def url_of_empty(kind: str, request: pytest.FixtureRequest, folder: Path) -> sa.URL:
    """The URL of an empty database of this kind."""
    if kind == "sqlite":
        return sa.make_url(f"sqlite:///{folder}/shop.db")
    server = sa.make_url(request.getfixturevalue(kind).url).set(drivername=_DRIVERS[kind])
    name = f"shop_{uuid4().hex[:8]}"
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return server.set(database=name)
