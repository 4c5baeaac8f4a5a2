"""A user's table on each database in turn, and hands on it that do not go through Tickoff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tickoff.names import new_token
from tickoff.stores.sql.engines import database_of
from tickoff.tables import open_table
from tickoff.tables.base import Batch, Key, Plan
from tickoff.tables.ledger import ledger
from tickoff.tables.table import SqlRecordTable

DATABASES = ("sqlite", "postgres", "mariadb")
TTL = 60.0


@dataclass
class Home:
    """A database of a user's."""

    kind: str
    url: str
    engine: sa.Engine
    opened: list[SqlRecordTable] = field(default_factory=list)

    def run(self, sql: str, *values: Any) -> Any:
        """Run a statement as the user would; the rows, if it has any."""
        with self.engine.connect() as connection, connection.begin():
            result = connection.exec_driver_sql(sql, *values)
            return result.all() if result.returns_rows else result.rowcount

    def open(self, plan: Plan, *, installed: bool = True) -> SqlRecordTable:
        """The records of a plan."""
        table = open_table(self.url, plan)
        assert isinstance(table, SqlRecordTable)
        self.opened.append(table)
        if installed:
            table.install()
        return table

    def make(self, table: sa.Table, rows: Sequence[dict[str, Any]] = ()) -> None:
        """Make a table with rows in it."""
        with self.engine.connect() as connection, connection.begin():
            table.create(connection)
            if rows:
                connection.execute(sa.insert(table), list(rows))

    def expire(self) -> None:
        """Let every claim run out now."""
        with self.engine.connect() as connection, connection.begin():
            connection.execute(
                sa.update(ledger).where(ledger.c.owner != "").values(until=datetime(2001, 1, 1))  # noqa: DTZ001
            )


@pytest.fixture(params=DATABASES)
def kind(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    name: str = request.param
    return name


@pytest.fixture
def home(kind: str, url_of: Callable[[str], str], tmp_path: Path) -> Iterator[Home]:
    """The database of the test."""
    url = f"sqlite:///{tmp_path}/shop.db" if kind == "sqlite" else url_of(kind)
    engine = database_of(url).open(30.0).execution_options(isolation_level=_users_isolation(kind))
    made = Home(kind, url, engine)
    yield made
    for table in made.opened:
        table.close()
    engine.dispose()


def _users_isolation(kind: str) -> str:
    return "SERIALIZABLE" if kind == "sqlite" else "REPEATABLE READ"  # not ours, on purpose


@dataclass
class Contacts:
    """The article's table, and its records."""

    home: Home
    name: str
    keeper: str
    """The table with the states: the same, or its companion."""
    records: SqlRecordTable

    def fill(self, count: int, start: int = 1) -> None:
        """So many rows, with phone numbers in order."""
        with self.home.engine.connect() as connection, connection.begin():
            rows = [{"phone_number": phone(i)} for i in range(start, start + count)]
            connection.execute(sa.insert(sa.table(self.name, sa.column("phone_number"))), rows)

    def claim(self, limit: int = 10, floor: Key | None = None, ttl: float = TTL) -> Batch:
        """A claim by somebody."""
        return self.records.claim(new_token(), "host:1:a", limit, ttl, floor)

    def suspect(self) -> Batch:
        """A claim of a suspect."""
        return self.records.claim_suspect(new_token(), "host:1:a", TTL)

    def row(self, i: int) -> Any:
        """Status, claim, attempts, error, number and whether there is an `until`."""
        return self.home.run(
            f"SELECT status, status_claim, status_attempts, status_error, aadhaar_number, "
            f"status_until IS NOT NULL FROM {self.keeper} WHERE phone_number = '{phone(i)}'"
        )[0]

    def states(self) -> str:
        """The first letters of all states, in key order; a row without a record is PENDING."""
        rows = self.home.run(
            f"SELECT coalesce(k.status, 'PENDING') FROM {self.name} u "
            f"LEFT JOIN {self.keeper} k ON k.phone_number = u.phone_number ORDER BY u.phone_number"
        )
        return "".join(row[0][0] for row in rows)

    def ledger(self) -> int:
        """How many rows the ledger has for it."""
        query = (
            sa.select(sa.func.count()).select_from(ledger).where(ledger.c.record == f"{self.keeper}.status")
        )
        with self.home.engine.connect() as connection:
            return connection.execute(query).scalar_one()


def phone(i: int) -> str:
    """The phone number of the i-th contact."""
    return f"p{i:05}"


def keys(batch: Batch) -> list[int]:
    """Which contacts a claim got."""
    return [int(record.key[0][1:]) for record in batch.records]


def table_name() -> str:
    """A name no other test uses."""
    return f"t{uuid4().hex[:12]}"


@pytest.fixture(params=["within", "beside"])
def contacts(home: Home, request: pytest.FixtureRequest) -> Contacts:
    """Phone and aadhaar numbers, tracked in `status`, without rows: in their table, and in a companion."""
    return contacts_beside(home) if request.param == "beside" else _contacts_within(home)


def _contacts_within(home: Home) -> Contacts:
    name = table_name()
    home.run(
        f"CREATE TABLE {name} (phone_number varchar(20) NOT NULL PRIMARY KEY, aadhaar_number varchar(12))"
    )
    plan = Plan(name, "status", result=("aadhaar_number",))
    return Contacts(home, name, name, home.open(plan))


def contacts_beside(home: Home) -> Contacts:
    """The same, their answers in a companion, in a column as short."""
    name = table_name()
    keeper = f"{name}_kept"
    home.run(f"CREATE TABLE {name} (phone_number varchar(20) NOT NULL PRIMARY KEY, city varchar(20))")
    records = home.open(Plan(name, "status", result=("aadhaar_number",), companion=keeper), installed=False)
    for statement in records.ddl():
        home.run(
            statement.replace(
                "aadhaar_number LONGTEXT CHARACTER SET utf8mb4", "aadhaar_number varchar(12)"
            ).replace("aadhaar_number TEXT", "aadhaar_number varchar(12)")
        )
    return Contacts(home, name, keeper, records)
