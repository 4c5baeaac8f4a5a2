"""Behind a real PgBouncer in transaction mode: a statement may meet a session another client has used."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from dev.servers import Server, pgbouncer

from tests.conftest import start
from tests.records.shop import Shop, eventually
from tickoff import StaleFence, Tickoff
from tickoff.stores import open_store
from tickoff.stores.base import Examined
from tickoff.stores.sql import bounded


@pytest.fixture(scope="module")
def bouncer(postgres: Server) -> Iterator[Server]:
    """One of two sessions for all clients."""
    yield from start(lambda: pgbouncer(postgres, "transaction"))
    bounded._pooled.clear()


@pytest.fixture
def fleet(bouncer: Server) -> Iterator[list[Tickoff]]:
    """Three servers with connections of their own."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Tickoff(bouncer.url))) for _ in range(3)]


def checks(url: str) -> set[str]:
    with closing(open_store(url)) as store:
        store.migrate()
        assert isinstance(store, Examined)
        return {finding.check for finding in store.examine()}


def test_doctor_tells_of_transaction_mode_and_accepts_session_mode(bouncer: Server, postgres: Server) -> None:
    """Only the one hands a session to whoever comes next."""
    assert checks(bouncer.url) == {"postgres-pooler"}
    with pgbouncer(postgres, "session") as other:
        assert checks(other.url) == set()
    assert checks(postgres.url) == set()


def test_a_statement_that_another_client_prepared_is_never_run_for_ours(
    bouncer: Server, postgres: Server, name: str
) -> None:
    """Drivers number their statements: the first one of a stranger has the name of our first one.

    With our own prepared in the first session, and the stranger's in the second one, our next release would
    put its two values into the stranger's table, and hear that one row was changed.
    """
    bounded._pooled.clear()
    strangers = f"strangers_{name[-8:]}"
    with (
        closing(Tickoff(bouncer.url)) as jobs,
        psycopg.connect(postgres.url, autocommit=True) as direct,
        psycopg.connect(bouncer.url) as holder,
        psycopg.connect(bouncer.url, autocommit=True) as stranger,
    ):
        direct.execute(f"CREATE TABLE {strangers} (one text, other text)")
        for _ in range(10):
            with jobs.lock(name):
                pass
        lease = jobs.race(name)
        assert lease
        holder.execute("SELECT 1")  # keeps the session that we had
        for _ in range(10):
            stranger.execute(f"INSERT INTO {strangers} VALUES (%s, %s)", ("their", "own"))
        lease.release()
        assert jobs.race(name)
        told = direct.execute(f"SELECT one, other, count(*) FROM {strangers} GROUP BY 1, 2").fetchall()
    assert told == [("their", "own", 10)]


def test_locks_have_one_holder_at_a_time(
    fleet: list[Tickoff], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also with more clients than sessions, each of which would have prepared its statements by then."""
    inside, seen = [0], list[int]()

    def work(jobs: Tickoff) -> None:
        for _ in range(20):
            with jobs.lock(name, ttl="10s", wait="30s"):
                inside[0] += 1
                seen.append(inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    threads = [threading.Thread(target=work, args=(jobs,)) for jobs in fleet for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [1] * 120
    assert "did not answer" not in caplog.text


def test_a_lease_is_renewed_and_lost_to_nobody(fleet: list[Tickoff], name: str) -> None:
    """For longer than its TTL, while others try."""
    with fleet[0].lock(name, ttl="1s") as lease:
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert not fleet[1].race(name)
            time.sleep(0.05)
        lease.check()
    assert fleet[1].race(name)


def test_each_tick_runs_once(fleet: list[Tickoff], name: str) -> None:
    """Three servers, four ticks, and what was asked for by hand."""
    ran: Counter[Any] = Counter()
    for jobs in fleet:
        jobs._namespace = name[-20:]
        jobs.every("1s", name="tock")(lambda tick: ran.update([(tick.at, tick.manual)]))
    with ExitStack() as stack:
        for jobs in fleet:
            stack.enter_context(jobs)
        assert eventually(lambda: len(ran) >= 4, 20)
        fleet[0].trigger("tock")
        assert eventually(lambda: any(manual for _, manual in ran), 20)
    assert set(ran.values()) == {1}
    assert {run.outcome for run in fleet[0].history("tock")} == {"ok"}
    assert fleet[0].status().jobs[0].name == "tock"


def test_records_are_worked_once(bouncer: Server) -> None:
    """Two servers, one table."""
    shop = Shop(bouncer.url, "postgres")
    calls: Counter[int] = Counter()
    with closing(shop):
        shop.stock(500)
        passes = [shop.records(lambda row: calls.update([row.id]), concurrency=4) for _ in range(2)]
        threads = [threading.Thread(target=one.run) for one in passes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert shop.states() == {"DONE": 500}
        assert set(calls.values()) == {1}


def test_an_older_holder_cannot_commit(fleet: list[Tickoff], bouncer: Server, name: str) -> None:
    """The user's own engine goes through the pooler as well."""
    url = bouncer.url.replace("postgresql:", "postgresql+psycopg:")
    engine = sa.create_engine(url, connect_args={"prepare_threshold": None})
    older = fleet[0].race(name)
    assert older
    fleet[1].store.evict(name, "ann", "it hangs")
    newer = fleet[1].race(name)
    assert newer
    with newer.transaction(engine):
        pass
    with pytest.raises(StaleFence), older.transaction(engine):
        pass
    engine.dispose()
