"""A companion beside a user's table: new, removed and changed rows, and a table that is only read."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from tests.tables.conftest import TTL, Contacts, Home, contacts_beside, keys, phone, table_name
from tests.tables.test_tables import HOSTILE, KEYS, live_through
from tickoff.errors import ConfigError
from tickoff.names import new_token
from tickoff.tables import open_table
from tickoff.tables.base import Batch, Charged, Done, Failed, Plan, State
from tickoff.tables.enrolling import AT_ONCE
from tickoff.tables.table import SqlRecordTable

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def contacts(home: Home) -> Contacts:
    """Phone numbers and cities; states and answers in a companion."""
    return contacts_beside(home)


def work(contacts: Contacts, limit: int = 100, answer: str = "a") -> list[int]:
    """Claim what is there, from the beginning, and answer all of it; which contacts."""
    batch = contacts.claim(limit)
    settle(contacts.records, batch, answer)
    return keys(batch)


def settle(records: SqlRecordTable, batch: Batch, answer: str = "a") -> None:
    (column,) = records.plan.result
    verdicts = [Done(record.key, {column: answer}) for record in batch.records]
    assert len(records.settle(batch.token, verdicts, last=True).written) == len(verdicts)


def counts(records: SqlRecordTable) -> dict[str, int]:
    return {state.value: count for state, count in records.counts().items() if count}


# Rows that come.


def test_new_rows_are_pending_and_found_wherever_they_are(contacts: Contacts) -> None:
    """Above the floor by the next claim there, below it by the next one from the beginning."""
    contacts.fill(3, start=10)
    assert counts(contacts.records) == {"PENDING": 3}
    assert work(contacts) == [10, 11, 12]
    contacts.fill(1, start=5)
    contacts.fill(2, start=20)
    assert counts(contacts.records) == {"PENDING": 3, "DONE": 3}
    assert contacts.records.left().wake == 0
    assert keys(contacts.claim(10, floor=(phone(12),))) == [20, 21]
    assert keys(contacts.claim(10)) == [5]


def test_a_claim_does_not_look_at_all_of_a_large_table(contacts: Contacts) -> None:
    """New rows get their records some thousand at a time, and none while there are records to be claimed."""
    contacts.fill(AT_ONCE + 700)

    def enrolled() -> int:
        rows = contacts.home.run(f"SELECT count(*) FROM {contacts.keeper}")
        return int(rows[0][0])

    first = contacts.claim(10)
    assert enrolled() == AT_ONCE
    floor = first.records[-1].key
    while enrolled() == AT_ONCE:
        batch = contacts.claim(1000, floor=floor)
        floor = batch.records[-1].key
    assert keys(batch)[-1] >= AT_ONCE
    assert enrolled() == AT_ONCE + 700
    assert counts(contacts.records)["PENDING"] == AT_ONCE + 700 - keys(batch)[-1]


def test_servers_that_find_the_same_new_rows_claim_each_once(contacts: Contacts) -> None:
    """Neither fails, neither gets what the other has."""
    contacts.fill(2000)
    got: list[list[int]] = []
    threads = [threading.Thread(target=lambda: got.append(keys(contacts.claim(300)))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    together = [key for batch in got for key in batch]
    assert len(got) == 5
    assert len(together) == len(set(together)) > 0


def test_rows_chosen_for_a_sample_need_no_record_before(contacts: Contacts) -> None:
    """A canary comes before all claims."""
    contacts.fill(9)
    sampled = [record.key for record in contacts.records.sample(4)]
    batch = contacts.records.claim_these(new_token(), "me", sampled, TTL)
    assert sorted(sampled) == [record.key for record in batch.records]
    assert contacts.states().count("I") == 4


@pytest.mark.parametrize(
    "where", ["id > 0 AND region = 'in'", sa.and_(sa.column("id") > 0, sa.column("region") == "in")]
)
def test_only_rows_that_the_plan_means_get_a_record(home: Home, where: Any) -> None:
    """And those that are meant no more are passed over, until they are again."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, region varchar(5))")
    home.run(f"INSERT INTO {name} VALUES (1, 'in'), (2, 'us'), (3, 'in')")
    records = home.open(Plan(name, "status", where=where, companion=f"{name}_kept"))
    assert [record.key for record in records.claim(new_token(), "me", 1, TTL).records] == [(1,)]
    home.run(f"UPDATE {name} SET region = 'us' WHERE id = 3")
    assert records.claim(new_token(), "me", 5, TTL).records == ()
    assert counts(records) == {"IN_FLIGHT": 1}
    assert not records.left().pending
    home.run(f"UPDATE {name} SET region = 'in'")
    assert [record.key for record in records.claim(new_token(), "me", 5, TTL).records] == [(2,), (3,)]


# Rows that go.


def test_rows_that_vanished_are_not_counted_and_hold_nothing_up(contacts: Contacts) -> None:
    """In whatever state; an answer that comes after all is kept, and the pass is over."""
    contacts.fill(6)
    batch = contacts.claim(5)
    verdicts = [Done((phone(1),), {"aadhaar_number": "a"}), Failed((phone(2),), "no")]
    contacts.records.settle(batch.token, [*verdicts, Charged((phone(3),), "again", 0.0)])
    contacts.home.run(f"DELETE FROM {contacts.name}")
    assert counts(contacts.records) == {}
    assert not contacts.records.left().any
    assert contacts.records.sample(9) == ()
    assert contacts.records.show((phone(1),)) is None
    assert contacts.claim().records == ()
    assert contacts.records.retry() == 0
    assert contacts.records.reopen() == 0
    assert contacts.records.settle(batch.token, [Done((phone(4),), {"aadhaar_number": "late"})]).written
    contacts.home.expire()
    assert contacts.records.sweep(5).suspected == 1
    assert contacts.suspect().records == ()
    assert not contacts.records.news(None).suspects
    assert contacts.row(4)[4] == "late"


def test_a_row_that_comes_back_is_what_it_was(contacts: Contacts) -> None:
    """A table that is loaded anew each night pays nothing twice; what was not done is worked then."""
    contacts.fill(4)
    batch = contacts.claim(2)
    settle(contacts.records, batch)
    contacts.claim(1)
    contacts.home.run(f"DELETE FROM {contacts.name}")
    contacts.home.expire()
    contacts.records.sweep(5)
    assert contacts.suspect().records == ()
    contacts.fill(4)
    assert contacts.states() == "DDPP"
    assert keys(contacts.claim()) == [3, 4]


def test_a_row_removed_between_two_steps_of_a_claim_is_not_handed_over(contacts: Contacts) -> None:
    """Its record is PENDING as before, whoever looks for it."""
    contacts.fill(3)
    claiming = contacts.records._steps.claiming
    flip = claiming._flip

    def removing(connection: sa.Connection, *arguments: Any) -> None:
        flip(connection, *arguments)
        connection.exec_driver_sql(f"DELETE FROM {contacts.name} WHERE phone_number = '{phone(2)}'")
        connection.exec_driver_sql(
            f"UPDATE {contacts.name} SET city = 'Pune' WHERE phone_number = '{phone(3)}'"
        )

    if contacts.home.kind == "postgres":
        pytest.skip("PostgreSQL claims and reads in one statement")
    claiming._flip = removing  # type: ignore[method-assign]
    assert keys(contacts.claim()) == [1]
    claiming._flip = flip  # type: ignore[method-assign]
    assert tuple(contacts.row(2))[:2] == ("PENDING", None)
    assert keys(contacts.claim()) == [3]


# Rows that change.


def test_a_row_that_changed_stays_done_and_is_found(contacts: Contacts) -> None:
    """Whether it was in flight or DONE: nothing is paid twice unless somebody says so."""
    contacts.fill(4)
    batch = contacts.claim()
    contacts.home.run(f"UPDATE {contacts.name} SET city = 'Pune' WHERE phone_number = '{phone(2)}'")
    settle(contacts.records, batch)
    contacts.home.run(f"UPDATE {contacts.name} SET city = 'Agra' WHERE phone_number = '{phone(3)}'")
    assert contacts.states() == "DDDD"
    assert contacts.claim().records == ()
    assert contacts.records.changed() == 2
    shown = [contacts.records.show((phone(i),)) for i in (1, 2, 3)]
    assert [one.changed for one in shown if one is not None] == [False, True, True]
    assert contacts.records.reopen("city = 'Pune'", changed=True) == 1
    assert contacts.records.reopen(changed=True) == 1
    again = contacts.claim()
    assert [record.row.city for record in again.records] == ["Pune", "Agra"]
    settle(contacts.records, again, "b")
    assert contacts.records.changed() == 0
    assert contacts.records.reopen(changed=True) == 0


def test_a_row_that_changes_before_it_is_claimed_again_has_not_changed(contacts: Contacts) -> None:
    """The function sees it as it is; so after a charge, and after a retry."""
    contacts.fill(2)
    batch = contacts.claim()
    verdicts = [Charged((phone(1),), "no", 0.0), Failed((phone(2),), "no")]
    contacts.records.settle(batch.token, verdicts, last=True)
    contacts.home.run(f"UPDATE {contacts.name} SET city = 'Pune'")
    contacts.records.retry()
    again = contacts.claim()
    assert {record.row.city for record in again.records} == {"Pune"}
    settle(contacts.records, again)
    assert contacts.records.changed() == 0


@pytest.mark.parametrize(("before", "after"), [("NULL", "''"), ("''", "NULL"), ("'a,b'", "'a'"), ("1", "2")])
def test_nothing_and_empty_are_told_apart(contacts: Contacts, before: str, after: str) -> None:
    """And whatever else two values may share when they are written one after the other."""
    contacts.fill(1)
    contacts.home.run(f"UPDATE {contacts.name} SET city = {before}")
    work(contacts)
    assert contacts.records.changed() == 0
    contacts.home.run(f"UPDATE {contacts.name} SET city = {after}")
    assert contacts.records.changed() == 1


def test_only_what_the_function_sees_counts_as_a_change(home: Home) -> None:
    """A column it does not get may change all the time; with none but the key, nothing ever changes."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, seen varchar(9), unseen varchar(20))")
    home.run(f"INSERT INTO {name} VALUES (1, 'a', 'b')")
    for columns, changes in ((("seen",), 0), ((), 0), (None, 1)):
        plan = Plan(name, "status", result=("answer",), columns=columns, companion=table_name())
        records = home.open(plan)
        settle(records, records.claim(new_token(), "me", 1, TTL))
        home.run(f"UPDATE {name} SET unseen = '{plan.companion}'")
        assert records.changed() == changes


@pytest.mark.filterwarnings("ignore:Dialect sqlite.*does \\*not\\* support Decimal")
def test_columns_of_any_type_are_compared(home: Home) -> None:
    """And a moment is the same one in every time zone."""
    name = table_name()
    columns = [sa.Column(f"c_{kind}", column) for kind, (column, _) in KEYS.items()]
    table = sa.Table(name, sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), *columns)
    home.make(table, [{"id": 1} | {f"c_{kind}": values[0] for kind, (_, values) in KEYS.items()}])
    records = home.open(Plan(name, "status", result=("answer",), companion=f"{name}_kept"))
    settle(records, records.claim(new_token(), "me", 1, TTL))
    assert records.changed() == 0
    if home.kind == "postgres":
        home.run("ALTER DATABASE postgres SET timezone TO 'Asia/Kolkata'")
        assert home.open(records.plan, installed=False).changed() == 0
        home.run("ALTER DATABASE postgres RESET timezone")
    for kind, (_, values) in KEYS.items():
        with home.engine.connect() as connection, connection.begin():
            connection.execute(sa.update(table).values({f"c_{kind}": values[1]}))
        assert records.changed() == 1, kind
        with home.engine.connect() as connection, connection.begin():
            connection.execute(sa.update(table).values({f"c_{kind}": values[0]}))
        assert records.changed() == 0, kind


def test_where_states_are_kept_with_the_rows_nothing_tells_of_changes(home: Home) -> None:
    """It is said so, with what to do."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    records = home.open(Plan(name, "status"))
    with pytest.raises(ConfigError, match="companion=True"):
        records.reopen(changed=True)


# Keys.


@pytest.mark.filterwarnings("ignore:Dialect sqlite.*does \\*not\\* support Decimal")
@pytest.mark.parametrize("kind_of_key", KEYS)
def test_keys_of_any_type(home: Home, kind_of_key: str) -> None:
    """The companion's key is of the same type."""
    column, values = KEYS[kind_of_key]
    name = table_name()
    key = sa.Column("k", column, primary_key=True, autoincrement=False)
    home.make(sa.Table(name, sa.MetaData(), key, sa.Column("x", sa.Text)), [{"k": value} for value in values])
    plan = Plan(name, "s", result=("r",), companion=f"{name}_kept")
    live_through(home, home.open(plan), len(values))


def test_composite_keys(home: Home) -> None:
    """In the order of their index."""
    name = table_name()
    columns = [sa.Column("b", sa.String(10), nullable=False), sa.Column("a", sa.Integer, nullable=False)]
    table = sa.Table(name, sa.MetaData(), *columns, sa.UniqueConstraint("a", "b"))
    home.make(table, [{"a": a, "b": b} for a in (2, 1) for b in ("y", "x", "z")])
    records = home.open(Plan(name, "s", key=("b", "a"), result=("r",), companion=f"{name}_kept"))
    batch = records.claim(new_token(), "me", 4, TTL)
    assert [record.key for record in batch.records] == [(1, "x"), (1, "y"), (1, "z"), (2, "x")]
    home.run(f"INSERT INTO {name} (a, b) VALUES (2, 'yy')")
    above = records.claim(new_token(), "me", 4, TTL, (2, "x"))
    assert [record.key for record in above.records] == [(2, "y"), (2, "z")]
    assert [r.key for r in records.claim(new_token(), "me", 4, TTL).records] == [(2, "yy")]
    home.expire()
    records.sweep(5)
    for _ in range(7):
        settle(records, records.claim_suspect(new_token(), "me", TTL))
    records.reopen()
    live_through(home, records, 7)


@pytest.mark.parametrize("name", [HOSTILE, "select", "Group", "täble"])
def test_hostile_names(home: Home, name: str) -> None:
    """Tables, companions and columns may be called anything the database takes."""
    columns = [
        sa.Column(f"{name} k", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column(f"{name} x", sa.String(10)),
    ]
    table = sa.Table(name, sa.MetaData(), *columns)
    home.make(table, [{f"{name} k": i} for i in range(5)])
    records = home.open(Plan(name, "from", result=(f"{name} r",), companion=f"{name} from"))
    batch = records.claim(new_token(), "me", 3, TTL)
    settle(records, batch)
    rest = records.claim(new_token(), "me", 3, TTL, batch.records[-1].key)
    assert records.give_back(rest.token) == 2
    assert records.changed() == 0
    records.uninstall(states=True)
    with home.engine.begin() as connection:
        table.drop(connection)


def test_keys_that_are_equal_by_a_collation_are_one(home: Home) -> None:
    """Order and equality of keys are those of the user's column; written otherwise, it is the same row."""
    name = table_name()
    collation = {"sqlite": "NOCASE", "mariadb": "utf8mb4_unicode_ci"}.get(home.kind, '"und-x-icu"')
    kind = "varchar(20)" if home.kind != "mariadb" else "varchar(20) CHARACTER SET utf8mb4"
    home.run(f"CREATE TABLE {name} (k {kind} COLLATE {collation} PRIMARY KEY, x int)")
    home.run(f"INSERT INTO {name} (k) VALUES ('b'), ('A'), ('C')")
    records = home.open(Plan(name, "s", result=("r",), companion=f"{name}_kept"))
    first = records.claim(new_token(), "me", 1, TTL)
    assert first.records[0].key == ("A",)
    settle(records, first)
    if home.kind != "postgres":  # whose collations tell cases apart
        home.run(f"UPDATE {name} SET k = 'B' WHERE k = 'b'")
    rest = records.claim(new_token(), "me", 5, TTL, ("A",))
    assert [record.key for record in rest.records] == [("b",), ("C",)]
    settle(records, rest)
    assert counts(records) == {"DONE": 3}


def test_two_jobs_may_share_a_companion(home: Home) -> None:
    """Each has its column of states; what one of them found new is new to the other as well."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1), (2)")
    one = home.open(Plan(name, "a", result=("x",), companion=f"{name}_kept"))
    settle(one, one.claim(new_token(), "me", 5, TTL))
    other = home.open(Plan(name, "b", result=("y",), companion=f"{name}_kept"))
    batch = other.claim(new_token(), "me", 5, TTL)
    assert len(batch.records) == 2
    settle(other, batch, "z")
    assert home.run(f"SELECT x, y FROM {name}_kept") == [("a", "z"), ("a", "z")]
    one.uninstall(states=True)
    assert counts(other) == {"DONE": 2}


# The user's table is only read.


def test_the_users_table_is_only_read(home: Home) -> None:
    """Whoever may do no more than SELECT works it from the first claim to the last sweep."""
    name, user = table_name(), table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, city varchar(9))")
    home.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    plan = Plan(name, "status", result=("answer",), companion=f"{name}_kept")
    home.open(plan)
    records = open_table(_with_no_right_to_write(home, name, user), plan)
    settle(records, records.claim(new_token(), "me", 1, TTL))
    home.run(f"UPDATE {name} SET city = 'z'")
    assert records.reopen(changed=True) == 1
    records.claim(new_token(), "me", 5, TTL)
    home.expire()
    assert records.sweep(5, deep=True).suspected == 4
    for _ in range(4):
        settle(records, records.claim_suspect(new_token(), "me", TTL))
    assert counts(records) == {"DONE": 4}
    records.close()


def _with_no_right_to_write(home: Home, name: str, user: str) -> str:
    """The URL of somebody who may only SELECT there; on SQLite, writing fails for everybody."""
    if home.kind == "sqlite":
        for verb in ("INSERT", "UPDATE OF id", "DELETE"):
            trigger = f"CREATE TRIGGER {name}_{verb[:3]} BEFORE {verb} ON {name}"
            home.run(f"{trigger} BEGIN SELECT RAISE(ABORT, 'only read'); END")
        return home.url
    home.run(f"CREATE ROLE {user} LOGIN" if home.kind == "postgres" else f"CREATE USER {user}@'%%'")
    grantee = user if home.kind == "postgres" else f"{user}@'%%'"
    home.run(f"GRANT SELECT ON {name} TO {grantee}")
    for own in (f"{name}_kept", "tickoff_claim"):
        home.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {own} TO {grantee}")
    return sa.make_url(home.url).set(username=user).render_as_string(hide_password=False)


def test_rows_that_a_user_has_locked_are_worked_all_the_same(contacts: Contacts) -> None:
    """Nothing of ours needs a lock in the user's table."""
    if contacts.home.kind == "sqlite":
        pytest.skip("SQLite locks the whole file")
    contacts.fill(3)
    with contacts.home.engine.connect() as user, user.begin():
        user.execute(sa.text(f"UPDATE {contacts.name} SET city = 'u'"))
        batch = contacts.claim()
        assert keys(batch) == [1, 2, 3]
        settle(contacts.records, batch)
    assert contacts.records.changed() == 3


# Installing.


def test_the_printed_statements_install_and_a_result_may_be_of_another_type(home: Home) -> None:
    """Printing changes nothing; what install would make as texts may be made otherwise first."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id bigint PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1)")
    records = home.open(Plan(name, "state", result=("amount",), companion=f"{name}_kept"), installed=False)
    statements = records.ddl()
    assert not sa.inspect(home.engine).has_table(f"{name}_kept")
    for statement in statements:
        home.run(
            statement.replace("amount LONGTEXT CHARACTER SET utf8mb4", "amount int").replace(
                "amount TEXT", "amount int"
            )
        )
    assert records.install() == []
    batch = records.claim(new_token(), "me", 5, TTL)
    records.settle(batch.token, [Done((1,), {"amount": 7})], last=True)
    assert home.run(f"SELECT amount FROM {name}_kept") == [(7,)]


def test_what_a_companion_lacks_is_added(home: Home) -> None:
    """Another result column, say; records stay as they are."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1)")
    plan = Plan(name, "status", result=("a",), companion=f"{name}_kept")
    records = home.open(plan)
    settle(records, records.claim(new_token(), "me", 5, TTL))
    more = home.open(Plan(name, "status", result=("a", "b"), companion=plan.companion), installed=False)
    with pytest.raises(ConfigError, match=r"has no b to keep track in; run: tickoff records install"):
        more.check()
    (added,) = more.install()
    assert "ADD COLUMN" in added
    assert counts(more) == {"DONE": 1}


def test_uninstalled_the_states_and_answers_stay_unless_asked_for(home: Home) -> None:
    """Then the companion goes as a whole; the user's table was never touched."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1), (2)")
    records = home.open(Plan(name, "state", result=("r",), companion=f"{name}_kept"))
    settle(records, records.claim(new_token(), "me", 1, TTL))
    records.claim(new_token(), "me", 1, TTL)
    records.uninstall()
    assert home.run(f"SELECT id, state, r FROM {name}_kept ORDER BY id") == [
        (1, "DONE", "a"),
        (2, "PENDING", None),
    ]
    records.install()
    assert [r.key for r in records.claim(new_token(), "me", 5, TTL).records] == [(2,)]
    (dropped,) = records.uninstall(states=True)
    assert "DROP TABLE" in dropped
    assert records.uninstall(states=True) == []
    assert {column["name"] for column in sa.inspect(home.engine).get_columns(name)} == {"id"}
    assert records.install()
    assert counts(records) == {"PENDING": 2}


def test_a_companion_in_another_schema(home: Home) -> None:
    """For those who may make no table beside the user's."""
    if home.kind == "sqlite":
        pytest.skip("SQLite has no schemas but attached files")
    name, schema = table_name(), table_name()
    home.run(f"CREATE SCHEMA {schema}")
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    home.run(f"INSERT INTO {name} VALUES (1), (2)")
    records = home.open(Plan(name, "status", result=("r",), companion=f"{schema}.kept"))
    settle(records, records.claim(new_token(), "me", 5, TTL))
    assert home.run(f"SELECT r FROM {schema}.kept") == [("a",), ("a",)]
    records.uninstall(states=True)
    assert not sa.inspect(home.engine).has_table("kept", schema=schema)


def test_what_does_not_fit_is_refused_with_the_remedy(home: Home) -> None:
    """By the field, before anything is made."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, answer varchar(9))")
    plan = Plan(name, "status", companion=f"{name}_kept")
    with pytest.raises(
        ConfigError, match=rf"companion {name}_kept of {name} is not there; run: tickoff records install"
    ):
        home.open(plan, installed=False).check()
    taken = Plan(name, "status", result=("answer",), companion=f"{name}_kept")
    for refused in (lambda: home.open(taken), lambda: home.open(taken, installed=False).check()):
        with pytest.raises(ConfigError, match=f"result: {name} has a column 'answer', .* only read"):
            refused()
    home.run(f"CREATE TABLE {name}_kept (other int PRIMARY KEY)")
    with pytest.raises(ConfigError, match="no column 'id'"):
        home.open(plan)


def test_a_name_that_the_database_would_cut_is_refused(home: Home) -> None:
    """Before a table is made that nobody finds again."""
    if home.kind == "sqlite":
        pytest.skip("SQLite's names are as long as they are")
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    with pytest.raises(ConfigError, match=r"companion='xxx.* is too long: .*; name a shorter one"):
        home.open(Plan(name, "status", companion="x" * 65))


def test_the_users_own_column_of_that_name_is_the_users(home: Home) -> None:
    """It is handed to the function like any other."""
    name = table_name()
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY, status varchar(9))")
    home.run(f"INSERT INTO {name} VALUES (1, 'gold')")
    records = home.open(Plan(name, "status", where="status = 'gold'", companion=f"{name}_kept"))
    (record,) = records.claim(new_token(), "me", 5, TTL).records
    assert record.row.status == "gold"
    assert records.counts()[State.IN_FLIGHT] == 1
