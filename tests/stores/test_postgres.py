"""What is particular to PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import pytest
import sqlalchemy as sa
from dev.servers import Server

from tickoff import Lease, Skipped, Tickoff
from tickoff.stores.sql import bounded
from tickoff.stores.sql.postgres import PostgresStore


@pytest.fixture
def jobs(postgres: Server) -> Iterator[Tickoff]:
    """A Tickoff on PostgreSQL."""
    made = Tickoff(postgres.url)
    yield made
    made.close()


def test_a_pooler_that_mixes_up_prepared_statements_is_noticed(
    jobs: Tickoff, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind our back the session is another one: the race is won all the same, and no more is prepared."""
    monkeypatch.setattr(bounded, "_pooled", set())
    store = cast("PostgresStore", jobs.store)
    for _ in range(10):
        with jobs.lock(name):
            pass
    (connection,) = store._idle._idle
    assert connection.prepare_threshold is not None
    connection.pgconn.exec_(b"DEALLOCATE ALL")  # what a transaction pooler does, seen from here
    with jobs.lock(name) as lease:
        lease.check()
    assert "behind a pooler" in caplog.text
    assert [one.prepare_threshold for one in store._idle._idle] == [None]


def test_a_serializable_default_does_not_turn_lost_races_into_outages(postgres: Server, name: str) -> None:
    """Our connections are READ COMMITTED, whatever the database's default."""
    admin = sa.create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE strict")
        connection.exec_driver_sql("ALTER DATABASE strict SET default_transaction_isolation = serializable")
    admin.dispose()
    jobs = Tickoff(postgres.url.rpartition("/")[0] + "/strict")
    verdicts: list[Lease | Skipped] = []

    def compete() -> None:
        verdicts.extend(jobs.race(f"{name}-{i}") for i in range(50))

    threads = [threading.Thread(target=compete) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(verdicts) == 400
    assert sum(bool(verdict) for verdict in verdicts) == 50
    jobs.close()


def test_common_cases_are_one_statement_each(jobs: Tickoff, name: str) -> None:
    """A lock is two round trips, whether its name is new or known; nothing goes the long way."""
    store = cast("PostgresStore", jobs.store)
    with jobs.lock(f"{name}-warm-up"):
        pass
    statements: list[str] = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    for _ in range(3):
        with jobs.lock(name):
            pass
    assert statements == []
