"""A shop on each database in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.records.shop import Shop

DATABASES = ("sqlite", "postgres", "mariadb")


def opened(kind: str, url_of: Callable[[str], str], folder: Path, *, beside: bool = False) -> Iterator[Shop]:
    """A shop on the database of this kind; with a companion, if so."""
    shop = Shop(f"sqlite:///{folder}/shop.db" if kind == "sqlite" else url_of(kind), kind, beside=beside)
    yield shop
    shop.close()


@pytest.fixture(params=DATABASES)
def shop(request: pytest.FixtureRequest, url_of: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """A shop on each database in turn."""
    yield from opened(request.param, url_of, tmp_path)


@pytest.fixture
def corner_shop(url_of: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """A shop on SQLite, where it is about what is the same on all."""
    yield from opened("sqlite", url_of, tmp_path)
