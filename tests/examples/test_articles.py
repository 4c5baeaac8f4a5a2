"""The two programs Tickoff was made for: the hourly import on ten servers, the paid look-up of numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from dev.servers import Server

from tests.databases import database
from tests.examples.providers import Lookup, Supplier
from tests.examples.running import Stage, eventually

SERVERS = 10 if os.environ.get("TICKOFF_FULL") == "1" else 4
ROWS = 400


@pytest.fixture
def shop(request: pytest.FixtureRequest, stage: Stage, redis: Server, tmp_path: Path) -> Iterator[sa.Engine]:
    """An empty PostgreSQL database for the programs to work in; their leases are on Redis."""
    with database("postgres", request, tmp_path) as engine:
        url = engine.url.render_as_string(hide_password=False)
        stage.environment |= {"TICKOFF_URL": redis.url, "TICKOFF_DATABASE": url, "DATABASE_URL": url}
        yield engine


def test_the_products_are_imported_once_a_tick_by_ten_servers(
    stage: Stage, shop: sa.Engine, supplier: Supplier
) -> None:
    """All servers are due each second; the supplier is asked once a second, since the last success."""
    with shop.begin() as db:
        db.exec_driver_sql("CREATE TABLE products (id integer PRIMARY KEY, name text, cents integer)")
    stage.environment["SUPPLIER_URL"] = supplier.url
    for _ in range(SERVERS):
        stage.hurried("1s", "examples.product_import", "serve")
    eventually(lambda: len(supplier.first_pages) >= 4, stage)
    for program in stage.programs:
        assert program.terminate() == 0, program.said
    first, *later = supplier.first_pages
    assert "since" not in first
    assert len({query["until"] for query in supplier.first_pages}) == len(supplier.first_pages)
    assert [query["since"] for query in later] == [query["until"] for query in supplier.first_pages[:-1]]
    with shop.connect() as db:
        counts = db.exec_driver_sql("SELECT count(*), count(DISTINCT id) FROM products").one()
        newest = db.exec_driver_sql("SELECT cents FROM products WHERE id = 3").scalar_one()
    assert tuple(counts) == (90, 90)
    assert newest == 100 + len(supplier.first_pages)


@pytest.fixture
def contacts(stage: Stage, shop: sa.Engine) -> sa.Engine:
    """A table of numbers."""
    stage.environment["TICKOFF_APP"] = "examples.enrich_contacts"
    with shop.begin() as db:
        db.exec_driver_sql("CREATE TABLE contacts (phone_number text PRIMARY KEY, aadhaar_number text)")
        db.exec_driver_sql(f"INSERT INTO contacts SELECT 'n' || n FROM generate_series(0, {ROWS - 1}) n")
    return shop


def counted(contacts: sa.Engine) -> dict[str, int]:
    """How many rows are in each state."""
    with contacts.connect() as db:
        rows = db.exec_driver_sql("SELECT aadhaar_status, count(*) FROM contacts GROUP BY 1").all()
    return {row[0]: row[1] for row in rows}


def test_every_number_is_looked_up_and_none_is_paid_twice(
    stage: Stage, contacts: sa.Engine, lookup: Lookup
) -> None:
    """Two servers, one pass, a fifth of the first calls refused; null is an answer, and 404 is final."""
    stage.environment["LOOKUP_URL"] = lookup.url
    assert stage.run("-m", "tickoff", "records", "install", "enrich").process.returncode == 0
    servers = [stage.start("-m", "tickoff", "records", "run", "enrich") for _ in range(2)]
    unknown = {f"n{n}" for n in range(ROWS) if n % 50 == 9}
    assert [server.ended(150) for server in servers] == [1, 1], stage.everything_said()
    assert counted(contacts) == {"DONE": ROWS - len(unknown), "FAILED": len(unknown)}
    assert set(lookup.paid.values()) == {1}, stage.everything_said()
    assert {number for number, count in lookup.asked.items() if count > 1} == {
        f"n{n}" for n in range(ROWS) if n % 10 in (3, 7)
    }
    with contacts.connect() as db:
        empty = db.exec_driver_sql(
            "SELECT count(*) FROM contacts WHERE aadhaar_status = 'DONE' AND aadhaar_number IS NULL"
        ).scalar_one()
    assert empty == ROWS // 20


def test_a_spent_budget_stops_all_servers_and_charges_nobody(
    stage: Stage, contacts: sa.Engine, lookup: Lookup
) -> None:
    """402 pauses the pass with status 3; when it is paid, `resume` and another run finish it."""
    stage.environment["LOOKUP_URL"] = lookup.url
    stage.run("-m", "tickoff", "records", "install", "enrich")
    lookup.broke = True
    stopped = stage.run("-m", "tickoff", "records", "run", "enrich")
    assert stopped.process.returncode == 3, stopped.said
    assert "the budget is used up" in stopped.said
    assert counted(contacts) == {"PENDING": ROWS}
    lookup.broke = False
    assert stage.run("-m", "tickoff", "records", "resume", "enrich").process.returncode == 0
    stage.run("-m", "tickoff", "records", "run", "enrich")
    assert set(counted(contacts)) == {"DONE", "FAILED"}
    with contacts.connect() as db:
        most = db.exec_driver_sql("SELECT max(aadhaar_status_attempts) FROM contacts").scalar_one()
    assert most <= 2
