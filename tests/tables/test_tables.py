"""Users' tables as they come: odd keys, hostile names, tables with rows in them, tables that are wrong."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from tests.tables.conftest import TTL, Home, table_name
from tickoff.errors import ConfigError
from tickoff.names import new_token
from tickoff.tables import open_table
from tickoff.tables.base import Done, Failed, Plan, Record
from tickoff.tables.installing import ddl
from tickoff.tables.table import SqlRecordTable

pytestmark = pytest.mark.timeout(60)

KEYS: dict[str, tuple[Any, list[Any]]] = {
    "integer": (sa.Integer, [3, -1, 2]),
    "bigint": (sa.BigInteger, [2**62, -(2**62), 0]),
    "text": (sa.String(40), ["b", "Ä", "a'b", 'q"', "%s", "x ", "日本", ":p", "\\"]),
    "char": (sa.CHAR(3), ["b", "abc", "aa"]),
    "uuid": (sa.Uuid, [UUID(int=5), UUID(int=2**127), UUID(int=1)]),
    "date": (sa.Date, [date(2026, 1, 2), date(1999, 1, 1)]),
    "decimal": (sa.Numeric(12, 3), [Decimal("1.500"), Decimal("-2.001"), Decimal(3)]),
    "bytes": (
        sa.LargeBinary().with_variant(mysql.VARBINARY(20), "mysql", "mariadb"),
        [b"\x00\xff", b"a", b"\x80"],
    ),
    "moment": (
        sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"),
        [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC)],
    ),
}


@pytest.mark.filterwarnings("ignore:Dialect sqlite.*does \\*not\\* support Decimal")
@pytest.mark.parametrize("kind_of_key", KEYS)
def test_keys_of_any_type(home: Home, kind_of_key: str) -> None:
    """Claimed above a floor, settled, given back, swept, noted, shown: the whole life of a record."""
    column, values = KEYS[kind_of_key]
    name = table_name()
    table = sa.Table(
        name,
        sa.MetaData(),
        sa.Column("k", column, primary_key=True, autoincrement=False),
        sa.Column("r", sa.Text),
    )
    home.make(table, [{"k": value} for value in values])
    live_through(home, home.open(Plan(name, "s", result=("r",))), len(values))


def test_composite_keys(home: Home) -> None:
    """In the order of their index, whatever order the plan names them in."""
    name = table_name()
    table = sa.Table(
        name,
        sa.MetaData(),
        sa.Column("b", sa.String(10), nullable=False),
        sa.Column("a", sa.Integer, nullable=False),
        sa.Column("r", sa.Text),
        sa.UniqueConstraint("a", "b"),
    )
    home.make(table, [{"a": a, "b": b} for a in (2, 1) for b in ("y", "x", "z")])
    records = home.open(Plan(name, "s", key=("b", "a"), result=("r",)))
    batch = records.claim(new_token(), "me", 4, TTL)
    assert [record.key for record in batch.records] == [(1, "x"), (1, "y"), (1, "z"), (2, "x")]
    records.give_back(batch.token)
    live_through(home, records, 6)


def live_through(home: Home, records: SqlRecordTable, count: int) -> None:
    """Everything that a key is used for."""
    first = records.claim(new_token(), "me", 1, TTL)
    rest = records.claim(new_token(), "me", 100, TTL, first.records[0].key)
    assert len({record.key for record in (*first.records, *rest.records)}) == count
    assert records.claim(new_token(), "me", 100, TTL).records == ()
    floor = rest.records[-1].key
    before = records.news(floor)
    assert records.give_back(rest.token) == count - 1
    assert records.news(floor, before.seen).floor == first.records[0].key
    again = records.claim(new_token(), "me", 100, TTL, first.records[0].key)
    assert [r.key for r in again.records] == [r.key for r in rest.records]
    home.expire()
    assert records.sweep(5).suspected == count
    alone = [records.claim_suspect(new_token(), "me", TTL) for _ in range(count)]
    everybody = [record.key for record in (*first.records, *rest.records)]
    assert {batch.records[0].key for batch in alone} == set(everybody)
    for batch in alone:
        key = batch.records[0].key
        assert records.settle(batch.token, [Done(key, {"r": "ok"})], last=True).written == {key}
    for record in (*first.records, *rest.records):
        assert_done(records, record)
    assert records.reopen() == count
    failing = records.claim(new_token(), "me", 100, TTL)
    settled = records.settle(failing.token, [Failed(r.key, "no") for r in failing.records], last=True)
    assert len(settled.written) == records.retry() == count


def assert_done(records: SqlRecordTable, record: Record) -> None:
    standing = records.show(record.key)
    assert standing is not None
    assert standing.state == "DONE"
    assert standing.answer == {"r": "ok"}


HOSTILE = "Or\"der; DROP x 'é%s :p"
"""Quotes, spaces, a percent sign, a colon, upper case, no ASCII."""


@pytest.mark.parametrize("name", [HOSTILE, "select", "Group", "täble"])
def test_hostile_names(home: Home, name: str) -> None:
    """Tables and columns may be called anything the database takes."""
    columns = [
        sa.Column(f"{name} k", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column(f"{name} r", sa.String(10)),
    ]
    table = sa.Table(name, sa.MetaData(), *columns)
    home.make(table, [{f"{name} k": i} for i in range(5)])
    records = home.open(Plan(name, "from", result=(f"{name} r",)))
    batch = records.claim(new_token(), "me", 3, TTL)
    verdicts = [Done(record.key, {f"{name} r": "ok"}) for record in batch.records]
    assert len(records.settle(batch.token, verdicts, last=True).written) == 3
    rest = records.claim(new_token(), "me", 3, TTL, batch.records[-1].key)
    assert len(rest.records) == 2
    assert records.give_back(rest.token) == 2
    records.uninstall(states=True)
    with home.engine.begin() as connection:
        table.drop(connection)


def test_a_table_in_a_schema(home: Home) -> None:
    """`schema.table`, where the database knows schemas."""
    if home.kind == "sqlite":
        pytest.skip("SQLite has no schemas but attached files")
    schema = table_name()
    home.run(f"CREATE SCHEMA {schema}")
    home.run(f"CREATE TABLE {schema}.items (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {schema}.items VALUES (1), (2)")
    records = home.open(Plan(f"{schema}.items", "status"))
    batch = records.claim(new_token(), "me", 5, TTL)
    assert len(records.settle(batch.token, [Done(r.key) for r in batch.records], last=True).written) == 2


@pytest.mark.filterwarnings("ignore:Dialect sqlite.*does \\*not\\* support Decimal")
def test_results_of_any_type(home: Home) -> None:
    """Numbers, JSON, dates, bytes and nothing come back as they were written."""
    name = table_name()
    kinds = {
        "n": (sa.Numeric(10, 2), Decimal("1.25")),
        "j": (sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), {"a": [1, None]}),
        "d": (sa.Date, date(2026, 1, 2)),
        "b": (sa.LargeBinary, b"\x00\xff"),
        "f": (sa.Double, 0.1),
        "t": (sa.Text, "it's 100% \\ fine 😀"),
        "o": (sa.Boolean, True),
    }
    if home.kind == "mariadb":
        del kinds["j"]  # whose JSON is text
    if home.kind == "postgres":
        kinds["l"] = (postgresql.ARRAY(sa.Text), ["a", "b"])
    columns = [sa.Column(column, kind) for column, (kind, _) in kinds.items()]
    table = sa.Table(name, sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), *columns)
    home.make(table, [{"id": 1}, {"id": 2}])
    records = home.open(Plan(name, "status", result=tuple(kinds)))
    batch = records.claim(new_token(), "me", 2, TTL)
    values = {column: value for column, (_, value) in kinds.items()}
    settled = records.settle(batch.token, [Done((1,), values), Done((2,), {})], last=True)
    assert not settled.culprits
    with home.engine.connect() as connection:
        full, empty = connection.execute(sa.select(*table.c).order_by(table.c.id)).all()
        assert full._asdict() == {"id": 1, **values}
        assert set(empty[1:]) == {None}
        if home.kind == "postgres":  # SQL's NULL, not a null in JSON
            assert connection.scalar(sa.select(table.c.j.is_(None)).where(table.c.id == 2))


def test_only_rows_that_the_plan_means(home: Home) -> None:
    """`where` picks the rows, as text or as an expression; `columns` what the function gets."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, region varchar(5), x int)")
    home.run(f"INSERT INTO {name} VALUES (1, 'in', 7), (2, 'us', 8), (3, 'in', 9)")
    records = home.open(Plan(name, "status", columns=("x",), where="region = 'in'"))
    (one, two) = records.claim(new_token(), "me", 5, TTL).records
    assert [one.row._asdict(), two.row._asdict()] == [{"id": 1, "x": 7}, {"id": 3, "x": 9}]
    others = home.open(Plan(name, "status", where=sa.column("region") == "us"))
    assert [r.key for r in others.claim(new_token(), "me", 5, TTL).records] == [(2,)]


def test_installing_on_a_table_with_rows_while_others_insert(home: Home) -> None:
    """All rows are PENDING afterwards, of before and of meanwhile; doing it twice changes nothing."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    for i in range(100):
        home.run(f"INSERT INTO {name} VALUES ({i})")
    records = home.open(Plan(name, "state"), installed=False)
    with pytest.raises(ConfigError, match="tickoff records install"):
        records.check()
    stop = threading.Event()
    inserted: list[int] = []

    def insert() -> None:
        for i in range(1000, 100_000):
            if stop.is_set():
                return
            home.run(f"INSERT INTO {name} (id) VALUES ({i})")
            inserted.append(i)

    user = threading.Thread(target=insert)
    user.start()
    try:
        assert records.install()
        assert records.install() == []
    finally:
        stop.set()
        user.join(30)
    assert len(records.claim(new_token(), "me", 100_000, TTL).records) == 100 + len(inserted)


def test_uninstalled_and_installed_again(home: Home) -> None:
    """The tracking columns go; the states stay unless asked for, so what is DONE stays done."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1), (2), (3)")
    records = home.open(Plan(name, "state"))
    batch = records.claim(new_token(), "me", 2, TTL)
    records.settle(batch.token, [Done((1,))])
    records.uninstall()
    columns = {column["name"] for column in sa.inspect(home.engine).get_columns(name)}
    assert columns == {"id", "state"}
    records.install()
    assert [r.key for r in records.claim(new_token(), "me", 5, TTL).records] == [(2,), (3,)]
    records.uninstall(states=True)
    assert {column["name"] for column in sa.inspect(home.engine).get_columns(name)} == {"id"}


def test_a_status_column_of_the_users_own(home: Home) -> None:
    """Rows that say nothing yet are PENDING; words that are no states are refused."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, aadhaar_status varchar(20))")
    home.run(f"INSERT INTO {name} VALUES (1, NULL), (2, 'DONE'), (3, 'PENDING')")
    records = home.open(Plan(name, "aadhaar_status"))
    assert {state.value: n for state, n in records.counts().items() if n} == {"PENDING": 2, "DONE": 1}
    assert [r.key for r in records.claim(new_token(), "me", 5, TTL).records] == [(1,), (3,)]
    home.run(f"INSERT INTO {name} (id, aadhaar_status) VALUES (4, 'new')")
    with pytest.raises(ConfigError, match="'new', which are no states"):
        records.install()


def test_the_printed_statements_install(home: Home) -> None:
    """What `ddl` says, connecting to nothing, is what the table needs."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1)")
    plan = Plan(name, "state")
    dialect = {"postgres": "postgresql"}.get(home.kind, home.kind)
    for statement in ddl(plan, dialect).split(";\n\n"):
        if statement:
            home.run(statement)
    records = home.open(plan, installed=False)
    assert len(records.claim(new_token(), "me", 5, TTL).records) == 1


def test_wrong_tables_are_refused_with_the_remedy(home: Home) -> None:
    """Each message names the field and what to do."""
    name = table_name()
    home.run(
        f"CREATE TABLE {name} (id int NOT NULL PRIMARY KEY, phone varchar(20), mail varchar(20) NOT NULL, "
        "short varchar(3), n int)"
    )
    home.run(f"CREATE UNIQUE INDEX {name}_u ON {name} (phone)")
    home.run(f"CREATE VIEW {name}_v AS SELECT * FROM {name}")
    home.run(f"CREATE TABLE {name}_nokey (id int)")
    home.open(Plan(name, "s"))
    wrong = {
        Plan(name[:-1], "s"): f"is not there; did you mean .*{name}",
        Plan(f"{name}_v", "s"): "is a view",
        Plan(f"{name}_nokey", "s"): "no primary key; name a unique key with key=",
        Plan(name, "s", key=("mail",)): "key=mail has no unique index .* CREATE UNIQUE INDEX",
        Plan(name, "s", key=("phone",)): "key=phone may be NULL",
        Plan(name, "s", key=("fone",)): "key: .* no column 'fone'; did you mean phone",
        Plan(name, "s", result=("answer",)): "result: .* no column 'answer'",
        Plan(name, "s", result=("id",)): "result: the column 'id' is the key",
        Plan(name, "s", columns=("nix",)): "columns: .* no column 'nix'",
        Plan(name, "n"): "status: the column n of .* holds no words",
        Plan(name, "short"): "holds 3 characters; make it 9",
        Plan(name, "other"): "has no other, other_claim, .*; run: tickoff records install",
    }
    for plan, message in wrong.items():
        with pytest.raises(ConfigError, match=message):
            home.open(plan, installed=False).check()


def test_wrong_databases_are_refused() -> None:
    """A store that is no database, a driver that is async, a file nobody else sees."""
    with pytest.raises(ConfigError, match="no database for records"):
        open_table("redis://localhost", Plan("t", "s"))
    with pytest.raises(ConfigError, match="seen by one process only"):
        open_table("sqlite://", Plan("t", "s"))


def test_a_users_engine_is_accepted(home: Home) -> None:
    """Its isolation and its transactions stay its own."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1)")
    records = open_table(home.engine, Plan(name, "state"))
    records.install()
    batch = records.claim(new_token(), "me", 5, TTL)
    assert records.settle(batch.token, [Done(r.key) for r in batch.records], last=True).written == {(1,)}
    records.close()
