"""`tickoff records …` as an operator meets it: one application, one table, its rows in all states."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

APP = """
import os, time
from tickoff import Pause, Tickoff

jobs = Tickoff("sqlite:///shop.db")

@jobs.each("contacts", key="id", status="status", result="answer", attempts=2, backoff="20ms", ttl="5s",
           concurrency=2)
def enrich(contact):
    if os.environ.get("BROKE"):
        raise Pause("the budget is spent")
    if contact.id == 3 and not os.environ.get("KIND"):
        raise ValueError("no such number")
    time.sleep(float(os.environ.get("SLOW", "0")))
    return f"a{contact.id}"
"""

Shop = Callable[..., Any]


@pytest.fixture
def shop(tickoff: Shop, tmp_path: Path) -> Shop:
    """Run `tickoff records VERB …` on an application whose table has ten rows."""
    (tmp_path / "shop.py").write_text(APP, "utf-8")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE contacts (id integer PRIMARY KEY, answer varchar(20))")
        database.executemany("INSERT INTO contacts (id) VALUES (?)", [(i,) for i in range(1, 11)])

    def run(*words: str, **variables: str) -> Any:
        return tickoff("records", *words, TICKOFF_APP="shop", **variables)

    return run


def sql(folder: Path, query: str) -> list[Any]:
    """Ask the table, past Tickoff."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        return database.execute(query).fetchall()


def test_without_tracking_columns_a_run_is_refused_with_the_remedy(shop: Shop) -> None:
    """It says what to run."""
    done = shop("run", "enrich")
    assert done.returncode == 2
    assert "tickoff records install" in done.stderr


def test_install_prints_what_it_would_do_and_does_it_once(shop: Shop, tmp_path: Path) -> None:
    """Printed, nothing is changed; run by hand, the print does the same as the command."""
    printed = shop("install", "enrich", "--print").stdout
    assert "ADD COLUMN status_claim" in printed
    assert "status" not in [row[1] for row in sql(tmp_path, "PRAGMA table_info(contacts)")]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(printed)
    assert shop("install", "enrich").stdout == "-- nothing is missing\n"
    assert json.loads(shop("install", "enrich", "--json").stdout) == {"statements": []}


def test_a_run_ends_with_1_when_some_failed_and_with_0_once_they_are_retried(
    shop: Shop, tmp_path: Path
) -> None:
    """The error can be read meanwhile, row by row."""
    shop("install", "enrich")
    failed = shop("run", "enrich")
    assert failed.returncode == 1
    assert "1 FAILED" in failed.stdout
    shown = shop("show", "enrich", "3").stdout
    assert "FAILED, 2 of 2 attempts used" in shown
    assert "last error: ValueError: no such number" in shown
    assert json.loads(shop("retry", "enrich", "--error", "%other%", "--json").stdout) == {"retried": 0}
    assert shop("retry", "enrich", "--error", "%no such%").stdout == "1 rows are PENDING again\n"
    assert shop("run", "enrich", KIND="1").returncode == 0
    assert sql(tmp_path, "SELECT DISTINCT status FROM contacts") == [("DONE",)]


def test_a_pause_of_the_work_ends_with_3_until_it_is_resumed(shop: Shop) -> None:
    """Who paused it and why stands in `ls`."""
    shop("install", "enrich")
    paused = shop("run", "enrich", BROKE="1")
    assert paused.returncode == 3
    assert "the budget is spent" in paused.stdout
    assert shop("run", "enrich", KIND="1").returncode == 3
    assert "the budget is spent" in shop("ls").stdout
    assert shop("resume", "enrich").stdout == "enrich goes on\n"
    assert shop("run", "enrich", KIND="1").returncode == 0


def test_pause_says_why_to_everybody(shop: Shop) -> None:
    """In words of the operator's."""
    shop("install", "enrich")
    assert shop("pause", "enrich", "--why", "deploying").stdout == "enrich is paused: deploying\n"
    assert json.loads(shop("show", "enrich", "--json").stdout)["paused_why"] == "deploying"


def test_ls_lists_the_jobs_and_how_far_they_are(shop: Shop) -> None:
    """For people and for programs."""
    shop("install", "enrich")
    shop("run", "enrich")
    assert shop("ls").stdout == "enrich  contacts  9 done, 1 failed, 0 in flight, 0 pending\n"
    (listed,) = json.loads(shop("ls", "--json").stdout)
    expected = {"name": "enrich", "table": "contacts", "done": 9, "failed": 1, "total": 10, "eta": 0.0}
    assert expected.items() <= listed.items()


def test_reopen_asks_for_a_condition_or_for_all(shop: Shop) -> None:
    """Because it is paid for again."""
    shop("install", "enrich")
    shop("run", "enrich", KIND="1")
    assert shop("reopen", "enrich").returncode == 2
    assert shop("reopen", "enrich", "--all", "--where", "id = 1").returncode == 2
    assert shop("reopen", "enrich", "--where", "id <= 2").stdout == "2 rows are PENDING again\n"
    assert json.loads(shop("reopen", "enrich", "--all", "--json").stdout) == {"reopened": 8}


def test_sweep_puts_back_what_a_dead_server_left(shop: Shop, tmp_path: Path) -> None:
    """A claim that nobody knows is found as well."""
    shop("install", "enrich")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute(
            "UPDATE contacts SET status = 'IN_FLIGHT', status_claim = 'gone', "
            "status_until = '2001-01-01 00:00:00.000000' WHERE id = 4"
        )
    assert json.loads(shop("sweep", "enrich", "--json").stdout)["suspected"] == 1
    assert "worked alone" in shop("show", "enrich", "4").stdout


def test_uninstall_asks_first_and_keeps_the_states(shop: Shop, tmp_path: Path) -> None:
    """Without an answer nothing happens."""
    shop("install", "enrich")
    assert shop("uninstall", "enrich").returncode == 130
    assert "DROP COLUMN" in shop("uninstall", "enrich", "--yes").stdout
    columns = [row[1] for row in sql(tmp_path, "PRAGMA table_info(contacts)")]
    assert columns == ["id", "answer", "status"]


def test_a_terminal_shows_a_bar_and_a_row_for_each_server(shop: Shop) -> None:
    """In place, on stderr; stdout has the summary only."""
    shop("install", "enrich")
    done = shop("run", "enrich", KIND="1", SLOW="0.4", FORCE_COLOR="1", TERM="xterm", COLUMNS="200")
    assert done.returncode == 0
    assert "\x1b[" in done.stderr
    assert "in flight on 1 server " in done.stderr
    assert "at most" in done.stderr
    assert done.stdout.startswith("enrich: nothing is left")


def test_json_of_a_run_is_one_object_and_nothing_else(shop: Shop) -> None:
    """Fit for a program that waits for it."""
    shop("install", "enrich")
    done = shop("run", "enrich", "--json", KIND="1")
    assert json.loads(done.stdout)["counts"]["done"] == 10
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "enrich", "99"), "no row 99"),
        (("show", "enrich", "x"), "'x' is no int"),
        (("show", "nothing"), "it has: enrich"),
        (("show", "enrich", "1", "2"), "2 values were given for id"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(shop: Shop, words: tuple[str, ...], said: str) -> None:
    """With a status that is not 0."""
    shop("install", "enrich")
    done = shop(*words)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_an_application_the_remedy_is_named(tickoff: Shop) -> None:
    """The option and its twin."""
    done = tickoff("records", "ls")
    assert done.returncode == 2
    assert "--app" in done.stderr


def test_a_run_that_is_terminated_gives_back_what_it_has_and_says_so(
    shop: Shop, tmp_path: Path, environment: dict[str, str]
) -> None:
    """128 + 15, and nothing is left in flight."""
    shop("install", "enrich")
    command = [sys.executable, "-m", "tickoff", "records", "run", "enrich", "--app", "shop"]
    told = {**environment, "SLOW": "0.5", "KIND": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=told, stdout=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 30
        while not sql(tmp_path, "SELECT 1 FROM contacts WHERE status = 'DONE'"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.terminate()
        said, _ = running.communicate(timeout=30)
    assert running.returncode == 128 + 15
    assert "stopped before the end" in said
    assert {state for (state,) in sql(tmp_path, "SELECT status FROM contacts")} == {"DONE", "PENDING"}


def test_ls_of_the_fleet_names_the_job_and_its_last_sweep(shop: Shop, tickoff: Shop, tmp_path: Path) -> None:
    """From any machine, without the application; the sweep itself is no job of the user's."""
    shop("install", "enrich")
    shop("run", "enrich")
    told = tickoff("ls", "--url", f"sqlite:///{tmp_path}/shop.db").stdout
    assert "RECORDS" in told
    assert "enrich" in told
    assert "ago: ok" in told
    assert "sweep:" not in told
