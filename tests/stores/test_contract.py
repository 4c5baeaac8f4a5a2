"""Every store keeps the public contract, and answers like the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tickoff.stores import open_store
from tickoff.testing import (
    LeaseStoreContract,
    Subject,
    compare_with_memory,
    memory_subject,
    redis_subject,
    sql_subject,
)


def subject_for(kind: str, url: str) -> Subject:
    """A store opened by its URL, with hands on its data."""
    if kind == "memory":
        return memory_subject()
    store = cast("Any", open_store(url))
    return redis_subject(store) if kind == "redis" else sql_subject(store)


class _Contract(LeaseStoreContract):
    kind: str

    @pytest.fixture
    def subject(self, url_of: Callable[[str], str]) -> Iterator[Subject]:
        made = subject_for(self.kind, url_of(self.kind))
        yield made
        made.store.close()

    def test_answers_like_the_reference(self, subject: Subject) -> None:
        """Random operations have the same outcome here as in the memory store."""
        compare_with_memory(subject)


class TestMemory(_Contract):
    kind = "memory"


class TestSqlite(_Contract):
    kind = "sqlite"


class TestRedis(_Contract):
    kind = "redis"


class TestPostgres(_Contract):
    kind = "postgres"


class TestMariadb(_Contract):
    kind = "mariadb"
