"""Guarded transactions: who may commit, who is refused, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dev.servers import Server
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests import fencing
from tests.databases import DATABASES, database
from tests.fencing import HIGH, Holder
from tests.processes import forked
from tickoff import Lease, LeaseLost, StaleFence, Tickoff, writes
from tickoff.errors import ConfigError, FenceHeld
from tickoff.ticks.tick import Tick


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """A user's database of each kind in turn."""
    with database(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture
def jobs() -> Iterator[Tickoff]:
    """A Tickoff whose leases live elsewhere."""
    made = Tickoff("memory://")
    yield made
    made.close()


@pytest.fixture
def lease(jobs: Tickoff, name: str) -> Lease:
    """A lease just won."""
    won = jobs.race(name, ttl="60s")
    assert isinstance(won, Lease)
    return won


def successor(jobs: Tickoff, lease: Lease) -> Lease:
    """Who wins the name after a holder whose time ran out without its noticing."""
    jobs.store.release(lease.name, lease.token)
    won = jobs.race(lease.name, ttl="60s")
    assert isinstance(won, Lease)
    return won


def high_of(engine: sa.Engine, name: str) -> int | None:
    with engine.connect() as connection:
        return connection.scalar(HIGH, {"name": name})


def test_the_fence_of_a_guarded_transaction_is_kept_with_it(engine: sa.Engine, lease: Lease) -> None:
    """Committed with the writes, and rolled back with them."""
    with engine.begin() as db:
        lease.guard(db)
    assert high_of(engine, lease.name) == lease.fence
    with engine.connect() as db:
        writes.guard(db, lease.name, lease.fence + 1, 60.0)
        db.rollback()
    assert high_of(engine, lease.name) == lease.fence


def test_the_same_holder_guards_as_often_as_it_likes(engine: sa.Engine, lease: Lease) -> None:
    """Twice in one transaction, and in several."""
    for _ in range(2):
        with engine.begin() as db:
            lease.guard(db)
            lease.guard(db)


def test_an_older_holder_is_refused_once_a_newer_one_has_guarded(
    engine: sa.Engine, lease: Lease, jobs: Tickoff
) -> None:
    """Its writes are rolled back, the newer ones stand, and the error tells the high-water mark."""
    newer = successor(jobs, lease)
    with newer.transaction(engine) as db:
        db.exec_driver_sql("CREATE TABLE t (x integer)")
    with pytest.raises(StaleFence) as refused, engine.begin() as db:
        lease.guard(db)
    assert (refused.value.name, refused.value.fence, refused.value.high) == (
        lease.name,
        lease.fence,
        newer.fence,
    )
    assert high_of(engine, lease.name) == newer.fence


def test_names_do_not_stand_in_each_others_way(engine: sa.Engine, jobs: Tickoff, lease: Lease) -> None:
    """A row per name, and names that differ in case only are two."""
    other = jobs.race(lease.name.upper())
    assert isinstance(other, Lease)
    with engine.begin() as db:
        other.guard(db)
        lease.guard(db)
    assert (high_of(engine, lease.name), high_of(engine, other.name)) == (lease.fence, other.fence)


def test_a_lost_lease_is_refused_also_when_nobody_has_come_after_it(engine: sa.Engine, lease: Lease) -> None:
    """Past its deadline a holder raises no fence."""
    lease.lose("for the test")
    lease.deadline = 0.0
    with pytest.raises(LeaseLost), engine.begin() as db:
        lease.guard(db)
    assert high_of(engine, lease.name) is None


def test_a_late_holder_waits_for_nobody(engine: sa.Engine, lease: Lease, jobs: Tickoff) -> None:
    """Past its deadline it only looks, so it is refused at once though the newer one is at work."""
    newer = successor(jobs, lease)
    lease.lose("for the test")
    lease.deadline = 0.0
    with newer.transaction(engine), pytest.raises(LeaseLost), engine.connect() as db:
        lease.guard(db)


def test_a_transaction_is_not_committed_when_the_lease_was_lost_in_it(
    engine: sa.Engine, lease: Lease
) -> None:
    """The last check comes before the commit."""
    with lease.transaction(engine):
        pass
    with pytest.raises(LeaseLost), lease.transaction(engine) as db:  # noqa: PT012 - it is raised on leaving
        db.exec_driver_sql("DELETE FROM tickoff_fence")
        lease.lose("for the test")
    assert high_of(engine, lease.name) == lease.fence


def test_a_tick_guards_by_its_lease(engine: sa.Engine, lease: Lease) -> None:
    """`tick.guard` and `tick.transaction` are those of the lease."""
    tick = Tick("import-products", lease, 0)
    with tick.transaction(engine) as db:
        tick.guard(db)
    assert high_of(engine, lease.name) == lease.fence


def test_the_rightful_winner_is_not_locked_out_by_a_store_whose_clock_stepped_back(
    engine: sa.Engine, jobs: Tickoff, lease: Lease
) -> None:
    """What the database has seen goes to the store with the next race, which grants above it."""
    ahead = lease.fence + 10_000_000
    with engine.begin() as db:
        writes.guard(db, lease.name, ahead, 60.0)
    with pytest.raises(StaleFence), engine.begin() as db:
        lease.guard(db)
    assert lease.release()
    deadline = time.monotonic() + 60
    while not isinstance(again := jobs.race(lease.name, ttl=0.5), Lease):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert again.fence > ahead
    with engine.begin() as db:
        again.guard(db)


@pytest.mark.parametrize("error", [StaleFence("a", 1, 2), FenceHeld("a")])
def test_the_errors_cross_processes(error: Exception) -> None:
    """A pool of processes hands them on."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


# What may be guarded


def test_a_session_is_guarded(engine: sa.Engine, lease: Lease) -> None:
    """Plain and scoped ones."""
    with Session(engine) as session, session.begin():
        lease.guard(session)
    assert high_of(engine, lease.name) == lease.fence
    scoped = scoped_session(sessionmaker(engine))
    lease.guard(scoped)
    scoped.commit()
    scoped.remove()


def test_an_async_session_is_guarded_by_run_sync_and_refused_as_it_is(postgres: Server, lease: Lease) -> None:
    """The error says how."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    engine = create_async_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))

    async def main() -> None:
        async with AsyncSession(engine) as session, session.begin():
            await session.run_sync(lease.guard)
            with pytest.raises(ConfigError, match=r"await db\.run_sync\(tick\.guard\)"):
                lease.guard(session)  # type: ignore[arg-type]
        async with engine.begin() as connection:
            await connection.run_sync(lease.guard)
            with pytest.raises(ConfigError, match="run_sync"):
                lease.guard(connection)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="async with"), lease.transaction(engine):  # type: ignore[arg-type]
            pass
        await engine.dispose()

    asyncio.run(main())


def test_autocommit_is_refused_however_it_was_asked_for(engine: sa.Engine, lease: Lease) -> None:
    """By the engine, by the connection, and behind SQLAlchemy's back by the driver."""
    refused = pytest.raises(ConfigError, match="autocommit")
    with refused, engine.execution_options(isolation_level="AUTOCOMMIT").begin() as db:
        lease.guard(db)
    with refused, engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        lease.guard(db)
    with refused, lease.transaction(engine.execution_options(isolation_level="AUTOCOMMIT")):
        pass
    with engine.connect() as db:
        driver: Any = db.connection.dbapi_connection
        match engine.name:
            case "sqlite":
                driver.isolation_level = None
            case "postgresql":
                driver.autocommit = True
            case _:
                driver.autocommit(True)
        with refused:
            lease.guard(db)
        db.invalidate()


def test_a_sqlite_driver_whose_user_sends_begin_is_in_a_transaction(tmp_path: Path, lease: Lease) -> None:
    """SQLAlchemy's own recipe for real transactions looks like autocommit to the driver."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")

    @sa.event.listens_for(engine, "connect")
    def hands_off(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    with lease.transaction(engine):
        pass
    assert high_of(engine, lease.name) == lease.fence
    engine.dispose()


@pytest.mark.parametrize("thing", ["sqlite:///shop.db", None, sa.create_engine("sqlite://")])
def test_what_is_no_transaction_is_refused_with_the_remedy(thing: Any, lease: Lease) -> None:
    """The message says what to pass."""
    with pytest.raises(ConfigError, match=r"pass an? "):
        lease.guard(thing)


def test_other_databases_are_refused(lease: Lease) -> None:
    """Before anything is sent to them."""
    strange = sa.create_engine("sqlite://")
    strange.dialect.name = "oracle"
    with pytest.raises(ConfigError, match="'oracle' is not supported"), strange.connect() as db:
        lease.guard(db)


# The table


def test_ten_processes_make_the_table_at_once(engine: sa.Engine) -> None:
    """All of them guard their first transaction at the same moment, and all of them succeed."""
    url = engine.url.render_as_string(hide_password=False)
    context = forked()
    gate, results = context.Barrier(10), context.Queue()
    each = [context.Process(target=fencing.first_guard, args=(url, n, gate, results)) for n in range(10)]
    for process in each:
        process.start()
    assert sorted(results.get(timeout=90) for _ in each) == ["guarded"] * 10
    for process in each:
        process.join(20)


def test_the_table_is_made_without_ending_the_users_transaction(engine: sa.Engine, lease: Lease) -> None:
    """MySQL commits what is open at every CREATE: so it is sent elsewhere."""
    with engine.begin() as db:
        db.exec_driver_sql("CREATE TABLE t (x integer)")
    with engine.connect() as db:
        db.exec_driver_sql("INSERT INTO t VALUES (1)")
        lease.guard(db)
        db.rollback()
        assert db.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0


def test_a_pool_without_a_connection_left_does_not_hold_up_the_first_guard(postgres: Server) -> None:
    """The connection that makes the table is none of the pool's."""
    url = sa.make_url(postgres.url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=1)
    with engine.begin() as db:
        db.exec_driver_sql("DROP TABLE IF EXISTS tickoff_fence")
    with engine.begin() as db:
        writes.guard(db, "a", 1, 60.0)
    engine.dispose()


def test_a_user_who_may_not_make_tables_is_given_the_statement(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The table can be made by somebody else, once."""
    with database("postgres", request, tmp_path) as owner:
        with owner.begin() as db:
            db.exec_driver_sql("DROP ROLE IF EXISTS reader")
            db.exec_driver_sql("CREATE ROLE reader LOGIN")
            db.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM public")
        reader = sa.create_engine(owner.url.set(username="reader"))
        with pytest.raises(ConfigError, match="CREATE TABLE tickoff_fence") as refused, reader.begin() as db:
            writes.guard(db, "a", 1, 60.0)
        with owner.begin() as db:
            said = str(refused.value)
            db.exec_driver_sql(said[said.index("CREATE TABLE") :])
            db.exec_driver_sql("GRANT SELECT, INSERT, UPDATE ON tickoff_fence TO reader")
        with reader.begin() as db:
            writes.guard(db, "a", 1, 60.0)
        reader.dispose()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mysql", "mariadb"])
def test_the_statement_is_printed_for_each_dialect(dialect: str) -> None:
    """Connecting to nothing."""
    assert writes.ddl(dialect).startswith("CREATE TABLE tickoff_fence (")


def test_an_unknown_dialect_is_refused() -> None:
    """With the list of those there are."""
    with pytest.raises(ConfigError, match="use one of sqlite, postgresql"):
        writes.ddl("oracle")


# Zombies and concurrency


def test_accepted_fences_never_go_back(engine: sa.Engine) -> None:
    """Eight processes guard with random fences; a log written in the same transactions tells the order."""
    fencing.make_log(engine)
    url = engine.url.render_as_string(hide_password=False)
    context = forked()
    results = context.Queue()
    each = [context.Process(target=fencing.guard_at_random, args=(url, n, results)) for n in range(8)]
    for process in each:
        process.start()
    told = [results.get(timeout=100) for _ in each]
    for process in each:
        process.join(20)
    kept = fencing.logged(engine)
    assert kept == sorted(kept)
    assert len(kept) == sum(accepted for accepted, _ in told)
    assert sum(refused for _, refused in told) > 0


@pytest.mark.parametrize("taker_wrote", [False, True])
def test_a_stopped_holder_is_refused_when_it_resumes(
    engine: sa.Engine, tmp_path: Path, name: str, taker_wrote: bool
) -> None:
    """Before the taker's first write by its deadline, after it by its fence; the taker's rows stand."""
    fencing.make_log(engine)
    store = f"sqlite:///{tmp_path}/tickoff.db"
    with Holder(store, engine, name, ttl=1.0) as late:
        late.freeze()
        taker = taken_over(Tickoff(store), name)
        if taker_wrote:
            write(taker, engine)
        late.thaw()
        assert late.do("write") == ("StaleFence" if taker_wrote else "LeaseLost")
        write(taker, engine)
    assert fencing.logged(engine) == [taker.fence] * (2 if taker_wrote else 1)


def test_a_holder_stopped_inside_its_transaction_does_not_block_the_taker(
    engine: sa.Engine, tmp_path: Path, name: str
) -> None:
    """PostgreSQL and MariaDB end it when its lease is over; SQLite gives up waiting, and says so."""
    fencing.make_log(engine)
    store = f"sqlite:///{tmp_path}/tickoff.db"
    with Holder(store, engine, name, ttl=2.0) as late:
        assert late.do("begin") == "begun"
        late.freeze()
        taker = taken_over(Tickoff(store), name)
        if engine.name == "sqlite":
            with pytest.raises(FenceHeld):
                write(
                    taker, sa.create_engine(engine.url, connect_args={"timeout": 0.2}, poolclass=sa.NullPool)
                )
        else:
            began = time.monotonic()
            write(taker, engine)
            assert time.monotonic() - began < 10
        late.thaw()
        refused = late.do("commit")
        assert refused in {"LeaseLost", "OperationalError", "InternalError"}
        write(taker, engine)
    assert set(fencing.logged(engine)) == {taker.fence}


def test_the_taker_gives_up_waiting_when_its_own_lease_would_end(engine: sa.Engine) -> None:
    """With an error of its own, and not before."""
    with engine.begin() as db:
        writes.guard(db, "a", 1, 60.0)
    patient = engine
    if engine.name == "sqlite":
        patient = sa.create_engine(engine.url, connect_args={"timeout": 1}, poolclass=sa.NullPool)
    with engine.connect() as holder, patient.connect() as taker:
        writes.guard(holder, "a", 2, 60.0)
        began = time.monotonic()
        with pytest.raises(FenceHeld, match="roll this transaction back"):
            writes.guard(taker, "a", 3, 1.0)
        assert 0.9 < time.monotonic() - began < 20


@pytest.mark.parametrize("own", [0, 30, 100_000])
def test_limits_of_the_user_stay_in_force_and_ours_end_with_the_transaction(
    engine: sa.Engine, own: int
) -> None:
    """The idle limit is the shorter of both; a second guard may prolong ours; afterwards all is as it was."""
    setting = {
        "sqlite": None,
        "postgresql": ("SET idle_in_transaction_session_timeout = '{}s'", POSTGRES_IDLE),
        "mysql": ("SET SESSION idle_transaction_timeout = {}", "SELECT @@idle_transaction_timeout"),
    }[engine.name]
    if setting is None:
        pytest.skip("SQLite has no such limit")
    put, get = setting
    with engine.connect() as db:
        db.exec_driver_sql(put.format(own))
        db.commit()
        for ending in (db.commit, db.rollback):
            for left in (60.0, 90.0):
                writes.guard(db, "a", 1, left)
                assert db.exec_driver_sql(get).scalar() == min(own or left, left)
            ending()
            assert db.exec_driver_sql(get).scalar() == own
            db.rollback()
        db.exec_driver_sql(put.format(0))
        db.commit()


POSTGRES_IDLE = (
    "SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)::int"
)


def taken_over(jobs: Tickoff, name: str) -> Lease:
    """Win a name as soon as its holder's time is over."""
    deadline = time.monotonic() + 30
    while not isinstance(won := jobs.race(name, ttl="60s"), Lease):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return won


def write(lease: Lease, engine: sa.Engine) -> None:
    with lease.transaction(engine) as db:
        fencing.log(db, lease.fence)


_GUARDS = """
import sys, sqlalchemy as sa
from tickoff import Tickoff, upsert

engine = sa.create_engine("sqlite://")
with Tickoff("memory://").lock("x") as lease, engine.begin() as db:
    db.exec_driver_sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    lease.guard(db)
    upsert(db, "t", [{"id": 1, "n": 2}], key="id")
assert "sqlalchemy.orm" not in sys.modules
"""


def test_a_guard_imports_no_mapper_while_other_threads_make_statements() -> None:
    """SQLAlchemy's statements fail while its ORM is imported: a keeper's did, at the first guarded write."""
    ran = subprocess.run([sys.executable, "-c", _GUARDS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
