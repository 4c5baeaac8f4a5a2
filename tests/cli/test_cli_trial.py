"""`tickoff records run --sample N` and `--dry-run`: what a pass would do, seen before it does it."""

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

@jobs.each("contacts", status="status", result="answer", attempts=1, concurrency=4, ttl="5s")
def enrich(contact):
    with open("calls", "a") as calls:
        print(contact.id, file=calls)
    if contact.id % 2:
        raise ValueError(f"no number for {contact.id}")
    return f"a{contact.id}"
"""

Shop = Callable[..., Any]


@pytest.fixture
def shop(tickoff: Shop, tmp_path: Path) -> Shop:
    """Run `tickoff records VERB …` on an application whose table has sixty rows."""
    (tmp_path / "shop.py").write_text(APP, "utf-8")
    (tmp_path / "calls").write_text("", "utf-8")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE contacts (id integer PRIMARY KEY, answer varchar(20))")
        database.executemany("INSERT INTO contacts (id) VALUES (?)", [(i,) for i in range(1, 61)])
    tickoff("records", "install", "enrich", TICKOFF_APP="shop")

    def run(*words: str) -> Any:
        return tickoff("records", "run", "enrich", *words, TICKOFF_APP="shop")

    return run


def states(folder: Path) -> dict[str, int]:
    """How many rows are in each state."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        return dict(database.execute("SELECT status, count(*) FROM contacts GROUP BY status").fetchall())


def calls(folder: Path) -> list[str]:
    """The rows that were called."""
    return (folder / "calls").read_text("utf-8").split()


def test_a_dry_run_calls_nothing_and_shows_plan_counts_and_sql(shop: Shop, tmp_path: Path) -> None:
    """For people, and as one JSON object."""
    done = shop("--dry-run")
    assert done.returncode == 0
    assert "60 PENDING" in done.stdout
    assert "60 calls would be made" in done.stdout
    assert "SELECT contacts.id" in done.stdout
    told = json.loads(shop("--dry-run", "--json").stdout)
    assert (told["table"], told["states"]["PENDING"], told["calls"]) == ("contacts", 60, 60)
    assert calls(tmp_path) == []
    assert states(tmp_path) == {"PENDING": 60}


def test_a_sample_that_nobody_agrees_to_writes_nothing(shop: Shop, tmp_path: Path) -> None:
    """It shows answers, kinds of errors, and what is left; exit 4."""
    done = shop("--sample", "20")
    assert done.returncode == 4
    assert "20 records were called" in done.stdout
    assert "answer = 'a" in done.stdout
    assert "x ValueError: no number for #" in done.stdout
    answered = int(done.stdout.partition(" answered")[0].split()[-1])
    assert f"{60 - answered} records are left: {60 - answered} calls" in done.stdout
    assert "FAILED" not in done.stderr
    called = calls(tmp_path)
    assert len(set(called)) == len(called) == 20
    assert called != sorted(called, key=int)[:20] or set(map(int, called)) != set(range(1, 21))
    assert states(tmp_path) == {"PENDING": 60}


def test_a_sample_that_is_agreed_to_pays_no_answer_twice(shop: Shop, tmp_path: Path) -> None:
    """Its answers are written; what failed in it is tried again in the pass, as if for the first time."""
    done = shop("--sample", "20", "--yes")
    assert done.returncode == 1
    assert states(tmp_path) == {"DONE": 30, "FAILED": 30}
    called = calls(tmp_path)
    assert [row for row in set(called) if int(row) % 2 == 0 and called.count(row) > 1] == []


def test_yes_without_a_sample_is_refused(shop: Shop, tmp_path: Path) -> None:
    """It would answer nothing."""
    done = shop("--yes")
    assert done.returncode == 2
    assert "--sample" in done.stderr
    assert calls(tmp_path) == []
