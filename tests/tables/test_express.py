"""PostgreSQL's statements: prepared once per connection, in full behind a pooler; arrays as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from tests.tables.conftest import Home
from tickoff.names import new_token
from tickoff.stores.sql import bounded
from tickoff.tables.arrays import writer
from tickoff.tables.base import Plan
from tickoff.tables.table import SqlRecordTable

PLAN = Plan("express", "status")


@pytest.fixture
def records(home: Home) -> Iterator[SqlRecordTable]:
    """Ten records on PostgreSQL, in a table of their own."""
    if home.kind != "postgres":
        pytest.skip("only PostgreSQL by psycopg sends a transaction in one message")
    home.run("DROP TABLE IF EXISTS express")
    home.run("CREATE TABLE express (id bigint PRIMARY KEY)")
    home.run("INSERT INTO express SELECT generate_series(1, 10)")
    yield home.open(PLAN)
    bounded._pooled.clear()


def claimed(records: SqlRecordTable) -> int:
    """How many of two records are claimed."""
    return len(records.claim(new_token(), "me", 2, 60.0).records)


def on_the_connection(records: SqlRecordTable, sql: str) -> Any:
    """Run a statement on the connection that the table uses."""
    with records._database.engine.connect() as connection:
        result = connection.exec_driver_sql(sql)
        return result.all() if result.returns_rows else None


def test_a_claim_is_prepared_once(records: SqlRecordTable) -> None:
    """Parsing and planning it takes as long as writing dozens of rows."""
    assert [claimed(records) for _ in range(3)] == [2, 2, 2]
    told = on_the_connection(records, "SELECT generic_plans FROM pg_prepared_statements WHERE from_sql")
    assert told == [(3,)]


def test_behind_a_pooler_that_shares_sessions_statements_are_sent_in_full(records: SqlRecordTable) -> None:
    """The next session does not know the statement: it is sent again, whole, and so from then on."""
    assert claimed(records) == 2
    on_the_connection(records, "DEALLOCATE ALL")
    assert claimed(records) == 2
    assert bounded.shares_sessions(records._database.address)
    on_the_connection(records, "DEALLOCATE ALL")
    assert claimed(records) == 2
    assert not on_the_connection(records, "SELECT 1 FROM pg_prepared_statements WHERE from_sql")


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        (sa.BigInteger(), [1, -2, 3], "{1, -2, 3}"),
        (sa.Text(), ["a", "", "NULL", "b,{c} ü"], '{"a","","NULL","b,{c} ü"}'),
        (sa.Text(), ["a", None], '{"a",NULL}'),
        (sa.BigInteger(), [1, None], [1, None]),
        (sa.BigInteger(), [True], [True]),
        (sa.Text(), ['say "a"', "b"], ['say "a"', "b"]),
        (sa.Text(), ["back\\slash"], ["back\\slash"]),
        (sa.Text(), [1], [1]),
    ],
)
def test_plain_arrays_are_written_as_text_and_the_others_left_to_the_driver(
    kind: Any, values: list[Any], text: Any
) -> None:
    write = writer(postgresql.ARRAY(kind), None)
    assert write is not None
    assert write(values) == text
