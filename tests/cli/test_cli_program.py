"""The program around the commands: help, errors, exit statuses, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest


def test_the_version_is_the_package_s(tickoff):
    """`tickoff --version` prints one line with the installed version."""
    done = tickoff("--version")
    assert (done.returncode, done.stdout) == (0, f"tickoff {version('tickoff')}\n")


def test_the_help_names_every_command(tickoff):
    """`tickoff --help` says what all of it is for, and lists the commands there are."""
    done = tickoff("--help")
    assert done.returncode == 0
    assert "Leases, ticks and records for a fleet" in done.stdout
    assert all(command in done.stdout for command in ("demo", "schema", "migrate"))


def test_the_console_script_and_the_module_are_the_same(tickoff):
    """The entry point that the package declares is the one `python -m tickoff` runs."""
    from importlib.metadata import entry_points

    from tickoff.cli import main

    (script,) = entry_points(group="console_scripts", name="tickoff")
    assert script.load() is main


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "status"), [("ls", 0), ("serve --app no_such_module", 2)])
def test_streams_that_are_closed_are_no_error(closed, words, status, environment, tmp_path):
    """A daemon may start us so; what we open does not get into their place."""
    line = f'"{sys.executable}" -m tickoff {words} {closed}; echo $? > status'
    url = {"TICKOFF_URL": f"sqlite:///{tmp_path}/tickoff.db"}
    subprocess.run(["sh", "-c", line], cwd=tmp_path, env={**environment, **url}, check=True)
    assert (tmp_path / "status").read_text() == f"{status}\n"


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_asking_for_help_imports_neither_a_database_nor_redis(argument, environment):
    """What a command does not use it does not pay for."""
    code = (
        "import sys\n"
        "from tickoff.cli import program\n"
        f"program.main([{argument!r}], prog_name='tickoff', standalone_mode=False)\n"
        "heavy = {'sqlalchemy', 'redis', 'psycopg', 'pymysql', 'rich'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["schema", "migrate"])
def test_a_command_that_needs_a_store_asks_for_one(tickoff, command):
    """Without a URL the message names both ways to give one."""
    done = tickoff(command)
    assert done.returncode == 2
    assert done.stderr.startswith("tickoff: no store is named; pass --url or set TICKOFF_URL")


@pytest.mark.parametrize("command", ["migrate", "demo"])
def test_a_wrong_url_is_one_line_and_status_2(tickoff, command):
    """A configuration error is told in one line, with no traceback."""
    done = tickoff(command, "--url", "nosuch://host")
    assert done.returncode == 2
    assert done.stderr.startswith("tickoff: the URL scheme 'nosuch' is unknown; use one of")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@127.0.0.1:1/x",
        "mysql://me:secret@127.0.0.1:1/x",
        "sqlite:////no/such/folder/x.db",
    ],
)
def test_an_unreachable_store_is_one_line_and_status_125(tickoff, url):
    """An outage has a status of its own, and its message no password."""
    done = tickoff("migrate", "--url", url)
    assert done.returncode == 125
    assert done.stderr.startswith("tickoff: ")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_a_dead_redis_is_told_before_any_server_of_the_demo_starts(tickoff):
    """The demo looks at its store first, once."""
    done = tickoff("demo", "--url", "redis://:secret@127.0.0.1:1")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_an_option_a_command_has_no_use_for_is_refused(tickoff):
    """Nothing is accepted and ignored: the schema knows no namespaces."""
    done = tickoff("migrate", "--namespace", "shop", "--url", "memory://")
    assert done.returncode == 2
    assert "No such option" in done.stderr


def test_a_bad_namespace_is_refused_wherever_it_comes_from(tickoff):
    """The environment's twin of an option is checked as the option is."""
    done = tickoff("demo", TICKOFF_NAMESPACE="a:b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "namespace='a:b' has a colon" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_output_that_cannot_be_written_is_one_line_and_status_1(environment):
    """A full disk is told as any other error is."""
    command = [sys.executable, "-m", "tickoff", "schema", "sqlite"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("tickoff: ")
