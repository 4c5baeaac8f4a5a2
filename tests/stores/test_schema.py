"""How the tables of the SQL stores come to be, and what happens when they are of another version."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import sqlalchemy as sa
from dev.servers import Server

from tests.processes import forked
from tests.racing import first_use
from tickoff import Lease, Tickoff
from tickoff.errors import ConfigError
from tickoff.stores import open_store
from tickoff.stores.sql import schema
from tickoff.stores.sql.store import SqlStore


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/tickoff.db"
        return
    server: Server = request.getfixturevalue(request.param)
    name = f"empty_{uuid4().hex[:8]}"
    driver = {"postgres": "postgresql+psycopg", "mariadb": "mysql+pymysql"}[request.param]
    admin = sa.create_engine(
        sa.make_url(server.url).set(drivername=driver), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield server.url.rpartition("/")[0] + f"/{name}"


@pytest.fixture
def sql_store() -> Iterator[Callable[[str], SqlStore]]:
    """Opens the SQL store of an URL, and closes it after the test."""
    opened: list[SqlStore] = []

    def open_one(url: str) -> SqlStore:
        opened.append(cast("SqlStore", open_store(url)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def test_tables_that_are_dropped_are_made_anew_and_what_is_remembered_put_back(
    empty: str, sql_store: Callable[[str], SqlStore]
) -> None:
    """A database that was restored, or reset by a developer: the store forgot, and goes on."""
    jobs = Tickoff(sql_store(empty))
    lease = jobs.race("a", ttl="60s")
    assert isinstance(lease, Lease)
    with jobs.lock("b"):
        pass
    with cast("SqlStore", jobs.store).bare_connection() as connection:
        schema.metadata.drop_all(connection)
    after = jobs.race("c")
    assert isinstance(after, Lease)
    lease.extend()
    assert jobs.store.read(["a"])[0].entry.fence == lease.fence
    assert lease.release()
    jobs.close()


def test_ten_processes_make_the_schema_at_once(empty: str) -> None:
    """All of them start at the same moment on an empty database, and all of them work."""
    context = forked()
    gate, results = context.Barrier(10), context.Queue()
    processes = [context.Process(target=first_use, args=(empty, gate, results)) for _ in range(10)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(10)
    assert answers.count("won") == 1
    assert answers.count("held") == 9


def test_a_new_sqlite_file_that_another_is_about_to_write_is_waited_for(
    tmp_path: Path, sql_store: Callable[[str], SqlStore]
) -> None:
    """While somebody begins to write, SQLite refuses to change to WAL at once, busy time-out or not."""
    other = sqlite3.connect(tmp_path / "tickoff.db", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE theirs (id INTEGER)")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(tmp_path / "tickoff.db", timeout=30).execute("PRAGMA journal_mode = WAL")
    timer = threading.Timer(0.3, other.execute, ["COMMIT"])
    timer.start()
    assert sql_store(f"sqlite:///{tmp_path}/tickoff.db").now() > 0
    timer.join()
    other.close()
    assert sqlite3.connect(tmp_path / "tickoff.db").execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_schema_is_versioned_and_migrated(
    empty: str, sql_store: Callable[[str], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old schema is refused with the remedy, migrate brings it up to date, a newer one is refused."""
    store = sql_store(empty)
    assert "made version 1" in store.migrate()
    assert "up to date at version 1" in store.migrate()

    def add_column(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE tickoff_run ADD COLUMN colour INTEGER")

    steps = [*schema.MIGRATIONS, schema.Migration(2, "colours", add_column)]
    with monkeypatch.context() as newer:
        newer.setattr(schema, "MIGRATIONS", steps)
        with pytest.raises(ConfigError, match="tickoff migrate"):
            sql_store(empty).now()
        assert "made version 2 (colours)" in sql_store(empty).migrate()
        assert sql_store(empty).now() > 0
    for call in (lambda: sql_store(empty).now(), lambda: sql_store(empty).migrate()):
        with pytest.raises(ConfigError, match="newer Tickoff"):
            call()


def test_the_printed_schema_is_the_one_that_is_made(empty: str, sql_store: Callable[[str], SqlStore]) -> None:
    """The DDL for those who may not create tables themselves gives the same tables."""
    engine = sql_store(empty).engine
    printed = schema.ddl(engine.dialect.name)
    with engine.connect() as connection:
        for statement in printed.split(";\n\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    store = sql_store(empty)
    assert "up to date at version 1" in store.migrate()
    columns = {
        table.name: [column["name"] for column in sa.inspect(engine).get_columns(table.name)]
        for table in schema.metadata.sorted_tables
    }
    assert columns == {table.name: [c.name for c in table.columns] for table in schema.metadata.sorted_tables}
    assert store.now() > 0


def test_names_without_a_schedule_are_dropped_after_a_week(
    url_of: Callable[[str], str], sql_store: Callable[[str], SqlStore]
) -> None:
    """Locks per order or per user do not fill the database for ever; scheduled names stay."""
    from tickoff.testing import sql_subject
    from tickoff.testing.contract import race

    for kind in ("sqlite", "postgres", "mariadb"):
        store = sql_store(url_of(kind))
        subject = sql_subject(cast("Any", store))
        old, kept, fresh = (f"{word}-{uuid4().hex}" for word in ("old", "kept", "fresh"))
        for name in (old, kept):
            won = race(store, name, scheduled=name == kept)
            store.release(name, won.entry.token)
            subject.age(name, 8 * 24 * 3600 * 1000)
        store.purge_every = 0.0
        race(store, fresh)
        assert store.names("old-") == []
        assert store.names(kept) == [kept]


def test_history_is_bounded_per_name(url_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that runs every second keeps its last runs, not all of them."""
    from tickoff.model import Ending, Outcome
    from tickoff.stores import memory
    from tickoff.stores.sql import store as sql
    from tickoff.testing.contract import hold_of, race

    monkeypatch.setattr(sql, "RUNS_KEPT", 5)
    monkeypatch.setattr(memory, "RUNS_KEPT", 5)
    monkeypatch.setattr(sql, "_PRUNE_EVERY", 8)  # by chance, so often that it comes
    for kind in ("memory", "sqlite", "postgres", "mariadb"):
        store, name = open_store(url_of(kind)), f"bounded-{uuid4().hex}"
        start = store.now() - 1_000_000
        for i in range(120):
            won = race(store, name, tick=start + i)
            store.settle([Ending(hold=hold_of(won), outcome=Outcome.OK)])
        assert 5 <= len(store.history(name, 1000)) < 110
        assert store.history(name, 1)[0].tick == start + 119
        store.close()


def test_schema_is_valid_for_the_sqlite_shell(tmp_path: Path) -> None:
    """What is printed can be piped into the engine's own tool."""
    import sqlite3

    database = sqlite3.connect(tmp_path / "x.db")
    database.executescript(schema.ddl("sqlite"))
    database.close()


def test_an_unknown_dialect_is_refused() -> None:
    """With the list of those there are."""
    with pytest.raises(ConfigError, match="use one of sqlite, postgresql"):
        schema.ddl("oracle")
