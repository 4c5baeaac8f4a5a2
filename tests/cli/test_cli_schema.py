"""`tickoff schema` prints what `tickoff migrate` does."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner

from tickoff import Tickoff
from tickoff.cli import program
from tickoff.stores.sql import schema

DIALECTS = ("sqlite", "postgresql", "mysql", "mariadb")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_schema_of_each_dialect_is_printed_without_a_driver(dialect, environment):
    """It connects to nothing, so it needs neither psycopg nor PyMySQL."""
    code = (
        "import sys\n"
        "sys.modules.update(psycopg=None, pymysql=None, MySQLdb=None, psycopg2=None)\n"
        "from tickoff.cli import main\n"
        f"sys.argv = ['tickoff', 'schema', {dialect!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("CREATE TABLE tickoff_") == len(schema.metadata.tables) + 1


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:///x.db", "sqlite"),
        ("postgres://h/x", "postgresql"),
        ("postgresql+psycopg2://h/x", "postgresql"),
        ("mysql://h/x", "mysql"),
        ("mariadb://h/x", "mariadb"),
    ],
)
def test_the_url_tells_the_dialect(url, dialect):
    """By option or by environment, whatever driver the URL names."""
    expected = CliRunner().invoke(program, ["schema", dialect]).stdout
    assert CliRunner().invoke(program, ["schema", "--url", url]).stdout == expected
    assert CliRunner(env={"TICKOFF_URL": url}).invoke(program, ["schema"]).stdout == expected


def test_a_dialect_named_wins_over_the_environment_but_not_over_an_option(tickoff):
    """The environment is a default; two explicit words that differ are refused."""
    assert "fillfactor" in tickoff("schema", "postgresql", TICKOFF_URL="sqlite:///x.db").stdout
    assert tickoff("schema", "postgresql", "--url", "sqlite:///x.db").returncode == 2


@pytest.mark.parametrize("url", ["redis://h", "rediss://h", "redis+cluster://h1,h2", "redis+sentinel://h/s"])
def test_redis_needs_no_schema_and_says_so_in_one_line(tickoff, url):
    """Nothing on stdout, so that nothing is piped anywhere; not an error either."""
    done = tickoff("schema", "--url", url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "tickoff: Redis needs no schema\n")


def test_an_unknown_dialect_is_refused_with_those_there_are(tickoff):
    """The message lists what may be written instead."""
    done = tickoff("schema", "oracle")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(dialect in done.stderr for dialect in DIALECTS)


def test_a_url_without_a_scheme_is_not_repeated(tickoff):
    """It may hold a password."""
    done = tickoff("schema", "--url", "me:secret@host/x")
    assert done.returncode == 2
    assert "secret" not in done.stderr


def test_the_printed_schema_is_what_the_store_accepts(tickoff, tmp_path):
    """Tables made by hand from the print are up to date for the store, and it works with them."""
    path = tmp_path / "tickoff.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(tickoff("schema", "sqlite").stdout)
    assert "up to date at version" in tickoff("migrate", "--url", f"sqlite:///{path}").stdout
    with closing(Tickoff(f"sqlite:///{path}")) as jobs:
        assert jobs.race("anything")


def test_migrate_says_what_it_did_and_may_be_repeated(tickoff, tmp_path):
    """The first run makes the tables, the second finds them."""
    url = f"sqlite:///{tmp_path}/tickoff.db"
    first, second = tickoff("migrate", "--url", url), tickoff("migrate", TICKOFF_URL=url)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "made version" in first.stdout
    assert "up to date at version" in second.stdout
