"""`tickoff records …` for a job with a companion, from installing it to taking it away."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

APP = """
from tickoff import Tickoff

jobs = Tickoff("sqlite:///shop.db")

@jobs.each("contacts", status="status", result="answer", companion=True, attempts=1, ttl="5s", concurrency=2)
def enrich(contact):
    with open("calls", "a") as calls:
        print(contact.id, file=calls)
    if contact.phone == "bad":
        raise ValueError("no such number")
    return f"a{contact.id}"
"""

Run = Callable[..., Any]


@pytest.fixture
def program(tickoff: Run, tmp_path: Path) -> Run:
    """Run `tickoff records VERB …` on an application whose table has forty rows, one of them bad."""
    (tmp_path / "shop.py").write_text(APP, "utf-8")
    (tmp_path / "calls").write_text("", "utf-8")
    sql(tmp_path, "CREATE TABLE contacts (id integer PRIMARY KEY, phone varchar(20))")
    for i in range(1, 41):
        sql(tmp_path, f"INSERT INTO contacts VALUES ({i}, 'p{i}')")
    sql(tmp_path, "UPDATE contacts SET phone = 'bad' WHERE id = 3")
    return lambda *words: tickoff("records", *words, TICKOFF_APP="shop")


def sql(folder: Path, query: str) -> list[Any]:
    """Ask the database, past Tickoff."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        return database.execute(query).fetchall()


def test_the_whole_life_of_a_job_on_the_command_line(program: Run, tmp_path: Path) -> None:
    """Installed, sampled, run, shown, retried, reopened, swept, removed; the table stays as it was."""
    before = sql(tmp_path, "SELECT * FROM contacts")
    refused = program("run", "enrich")
    assert refused.returncode == 2
    assert (
        "companion contacts_status of contacts is not there; run: tickoff records install" in refused.stderr
    )
    assert "CREATE TABLE contacts_status" in program("install", "enrich", "--print").stdout
    assert "CREATE TABLE contacts_status" in program("install", "enrich").stdout
    assert program("install", "enrich").stdout == "-- nothing is missing\n"
    assert "40 PENDING" in program("run", "enrich", "--dry-run").stdout
    assert "20 records were called" in program("run", "enrich", "--sample", "20").stdout
    assert sql(tmp_path, "SELECT DISTINCT status FROM contacts_status") == [("PENDING",)]
    assert program("run", "enrich", "--sample", "5", "--yes").returncode == 1
    assert program("ls").stdout == "enrich  contacts  39 done, 1 failed, 0 in flight, 0 pending\n"
    assert "no such number" in program("show", "enrich", "3").stdout
    assert json.loads(program("show", "enrich", "7", "--json").stdout)["answer"] == {"answer": "a7"}
    assert "  answer = 'a8'\n" in program("show", "enrich", "8").stdout
    assert sql(tmp_path, "SELECT * FROM contacts") == before

    sql(tmp_path, "UPDATE contacts SET phone = 'p3' WHERE id = 3")
    sql(tmp_path, "UPDATE contacts SET phone = 'other' WHERE id = 4")
    assert "changed since" in program("show", "enrich", "4").stdout
    assert json.loads(program("run", "enrich", "--dry-run", "--json").stdout)["changed"] == 1
    assert json.loads(program("retry", "enrich", "--json").stdout) == {"retried": 1}
    assert json.loads(program("reopen", "enrich", "--changed", "--json").stdout) == {"reopened": 1}
    assert program("reopen", "enrich", "--changed", "--all").returncode == 2
    assert program("run", "enrich").returncode == 0
    assert json.loads(program("reopen", "enrich", "--where", "answer = 'a9'", "--json").stdout) == {
        "reopened": 1
    }
    assert program("sweep", "enrich").returncode == 0
    asked = program("uninstall", "enrich", "--states")
    assert (asked.returncode, "all answers" in asked.stderr) == (130, True)
    assert "DROP TABLE contacts_status" in program("uninstall", "enrich", "--states", "--yes").stdout
    assert sql(tmp_path, "SELECT name FROM sqlite_master WHERE name LIKE 'contacts%'") == [("contacts",)]
