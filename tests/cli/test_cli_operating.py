"""The commands that ask a fleet and steer it, as a person types them."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.seeded import seed
from tickoff import Tickoff

READS = {
    "ls": ["ls"],
    "history": ["history", "import-products"],
    "explain": ["explain", "import-products"],
    "next": ["next", "import-products"],
    "doctor": ["doctor", "--ignore", "redis-persistence", "--ignore", "servers"],
}
ORDERS = {
    "trigger": ["trigger", "import-products"],
    "pause": ["pause", "import-products", "--why", "stock-taking"],
    "resume": ["resume", "import-products"],
    "release": ["release", "import-products", "--why", "burnt down"],
}
APP = """
from tickoff import Tickoff

jobs = Tickoff({url!r}, namespace={namespace!r})

@jobs.every("1s")
def import_products():
    pass

@jobs.every("1s")
def broken():
    raise ValueError("out of stock")
"""
MORE = """
@jobs.leader("watch")
def watch():
    pass

@jobs.each("contacts", name="enrich", status="state")
def enrich(contact):
    pass
"""


@pytest.fixture
def served(shared_url: str, name: str, tmp_path: Path, environment: dict[str, str]) -> Iterator[Fleet]:
    """An application served by `tickoff serve`, in a namespace of its own."""
    (tmp_path / "shop.py").write_text(APP.format(url=shared_url, namespace=name))
    fleet = Fleet(shared_url, name, tmp_path, environment)
    yield fleet
    fleet.close()


class Fleet:
    """A server, and the options that lead to its store."""

    def __init__(self, url: str, namespace: str, folder: Path, environment: dict[str, str]) -> None:
        self.options = ["--url", url, "--namespace", namespace]
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "tickoff", "serve", "--app", "shop"],
                cwd=folder,
                env=environment,
                stderr=log,
            )

    def until(self, words: str) -> str:
        """Wait for words in the log; the log."""
        deadline = time.monotonic() + 40
        while words not in self._log.read_text() and time.monotonic() < deadline:
            assert self.server.poll() is None, self._log.read_text()
            time.sleep(0.05)
        assert words in self._log.read_text()
        return self._log.read_text()

    def close(self) -> None:
        if self.server.poll() is None:
            self.server.kill()
            self.server.wait()


@pytest.mark.parametrize("command", ["ls", "doctor"])
def test_an_empty_store_is_told_of_as_such(tickoff: Any, shared_url: str, name: str, command: str) -> None:
    """Where nothing is, nothing is listed; in JSON, too."""
    options = ["--url", shared_url, "--namespace", name]
    said = tickoff(*READS[command], *options)
    assert said.returncode in (0, 1), said.stderr
    assert "0 servers, 0 jobs" in said.stdout
    told = json.loads(tickoff(*READS[command], *options, "--json").stdout)
    assert told["jobs"] in ([], 0)


@pytest.mark.parametrize("command", ["history", "explain", "next", *ORDERS])
def test_a_job_that_is_not_there_is_refused(tickoff: Any, tmp_path: Path, command: str) -> None:
    """With status 2, in one line."""
    done = tickoff(*(READS | ORDERS)[command], "--url", f"sqlite:///{tmp_path}/tickoff.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tickoff: there is no job 'import-products'; this store has seen none yet\n"


@pytest.mark.parametrize("command", [*READS, *ORDERS])
@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@127.0.0.1:1",
        "postgresql://me:secret@127.0.0.1:1/x",
        "mysql://me:secret@127.0.0.1:1/x",
    ],
)
def test_a_store_that_is_away_is_one_line_and_status_125(tickoff: Any, command: str, url: str) -> None:
    """Whatever was asked, and without the password."""
    done = tickoff(*(READS | ORDERS)[command], "--url", url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1), done.stderr
    assert "did not answer" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("scheme", ["redis", "postgresql", "mysql"])
def test_a_store_that_is_silent_is_not_waited_for_long(tickoff: Any, scheme: str) -> None:
    """Its machine takes connections, and nobody answers: that is told after five seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        done = tickoff("ls", "--url", f"{scheme}://me:secret@127.0.0.1:{silent.getsockname()[1]}/0")
        assert time.monotonic() - began < 15
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1), done.stderr
    assert "did not answer" in done.stderr


@pytest.mark.parametrize("command", [*READS, *ORDERS])
def test_no_store_at_all_says_how_to_name_one(tickoff: Any, command: str) -> None:
    """There is no guess at which one was meant."""
    done = tickoff(*(READS | ORDERS)[command])
    assert done.returncode == 2
    assert "pass --url or set TICKOFF_URL, or name the application: --app" in done.stderr


def test_a_night_with_all_commands(served: Fleet, tickoff: Any) -> None:
    """Asked, steered and asked again, from a folder where the code of the jobs is no argument."""
    log = served.until("ValueError: out of stock")
    assert "ERROR" in log
    assert "import-products: tick of" in served.until("INFO")
    assert "\x1b" not in log

    def run(*command: str, status: int = 0) -> str:
        done = tickoff(*command, *served.options)
        assert done.returncode == status, done.stderr
        lines = [line for line in done.stdout.splitlines() if len(line) > 80]
        assert lines == []
        return str(done.stdout + done.stderr)

    listed = run("ls")
    assert "1 server, 2 jobs" in listed
    assert "broken" in listed
    assert "every 1s" in listed
    assert "failed" in run("history", "broken", "-n", "2")
    assert "ValueError: out of stock" in run("history", "broken", "-n", "2")
    assert "tick of" in run("explain", "import-products")
    assert "this is no tick" in run("explain", "import-products", "2026-01-01T00:00:00.500Z")
    assert "every 1s" in run("next", "import-products")
    assert "did you mean 'broken'" in run("explain", "brocken", status=2)
    assert "paused broken: stock-taking" in run("pause", "broken", "--why", "stock-taking")
    assert "by " in run("ls")
    assert "stock-taking" in run("ls")
    assert "resume it first: tickoff resume broken" in run("trigger", "broken", status=1)
    assert "resumed broken; its next tick is" in run("resume", "broken")
    assert "1 server can take it" in run("trigger", "import-products")
    for command in READS.values():
        assert json.loads(tickoff(*command, *served.options, "--json").stdout)
    served.server.send_signal(signal.SIGTERM)
    assert served.server.wait(30) == 0


def test_a_lock_is_listed_and_released(tickoff: Any, shared_url: str, name: str) -> None:
    """By its name, with its holder; its holder stays out."""
    jobs, options = Tickoff(shared_url, namespace=name), ["--url", shared_url, "--namespace", name]
    lease = jobs.race("failover", ttl="60s")
    assert lease
    listed = tickoff("ls", *options).stdout
    assert "LOCK" in listed
    assert "failover" in listed
    assert "lease left 5" in listed
    done = tickoff("release", "failover", "--why", "burnt down", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("released failover, which ")
    again = tickoff("release", "failover", "--why", "burnt down", *options)
    assert (again.returncode, "nobody holds failover" in again.stderr) == (1, True)
    jobs.close()


def test_the_application_names_the_store_and_the_schedules(tickoff: Any, tmp_path: Path) -> None:
    """Also before any server has told of them."""
    url = f"sqlite:///{tmp_path}/tickoff.db"
    (tmp_path / "shop.py").write_text(APP.format(url=url, namespace="n"))
    assert "every 1s" in tickoff("next", "broken", "--app", "shop").stdout
    assert "import-products" in tickoff("ls", TICKOFF_APP="shop").stdout
    both = tickoff("ls", "--app", "shop", "--url", url)
    assert (both.returncode, "leave out --url and --namespace" in both.stderr) == (2, True)
    named = tickoff("next", "broken", "--cron", "* * * * *", "--app", "shop")
    assert (named.returncode, "leave out --cron" in named.stderr) == (2, True)


@pytest.mark.parametrize(
    ("only", "words"), [("nothing", "is no name of this application"), (None, "there is no module 'shop'")]
)
def test_what_cannot_be_served_is_one_line(
    tickoff: Any, tmp_path: Path, only: str | None, words: str
) -> None:
    """Not a traceback, and status 2."""
    if only:
        (tmp_path / "shop.py").write_text(APP.format(url=f"sqlite:///{tmp_path}/tickoff.db", namespace="n"))
    done = tickoff("serve", "--app", "shop", *(["--only", only] if only else []))
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("text", ["yesterday", "25:00", "2026-13-01"])
def test_a_time_that_is_none_is_refused_with_examples(tickoff: Any, text: str) -> None:
    """Before the store is asked."""
    done = tickoff("explain", "job", text, "--url", "memory://")
    assert (done.returncode, "is no time; write 02:30" in done.stderr) == (2, True)


def test_colours_are_for_terminals_that_want_them(tmp_path: Path, environment: dict[str, str]) -> None:
    """Not for pipes, and not where NO_COLOR is set."""
    url = f"sqlite:///{tmp_path}/tickoff.db"
    coloured = on_a_terminal(["doctor", "--url", url], environment)
    plain = on_a_terminal(["doctor", "--url", url], environment | {"NO_COLOR": "1"})
    assert "\x1b[31m" in coloured
    assert "\x1b[31m" not in plain


def on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "tickoff", *command], env=environment, stdout=theirs)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:  # Linux's end of a terminal
        pass
    os.close(ours)
    process.wait(30)
    return said.decode()


def test_names_are_completed_from_the_store(tmp_path: Path, environment: dict[str, str]) -> None:
    """As the shell asks for them; a store that is away completes nothing, and says nothing."""
    url = f"sqlite:///{tmp_path}/tickoff.db"
    (tmp_path / "shop.py").write_text(APP.format(url=url, namespace="n") + MORE)

    def completed(words: str, **variables: str) -> str:
        last = str(len(words.split()) - 1)
        asking = {"_TICKOFF_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": last}
        done = subprocess.run(
            [sys.executable, "-c", "from tickoff.cli import program; program(prog_name='tickoff')"],
            cwd=tmp_path,
            env=environment | asking | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.strip()

    assert completed("tickoff hist") == "plain,history"
    assert completed("tickoff history imp", TICKOFF_APP="shop") == "plain,import-products"
    assert completed("tickoff next imp", TICKOFF_APP="shop") == "plain,import-products"
    assert completed("tickoff explain wat", TICKOFF_APP="shop") == "plain,watch"
    assert completed("tickoff records run enr", TICKOFF_APP="shop") == "plain,enrich"
    assert completed("tickoff history imp", TICKOFF_URL="redis://127.0.0.1:1") == ""
    assert completed("tickoff records run enr", TICKOFF_APP="nowhere") == ""


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres", "mariadb"])
def test_a_large_fleet_is_answered_soon(
    tickoff: Any, url_of: Callable[[str], str], name: str, kind: str
) -> None:
    """1,000 jobs, 100,000 runs, 100 servers; bench/operating.py has the figures, this a generous bound."""
    url = url_of(kind)
    seed(url, name)
    for command in (["ls"], ["history", "job-0500"], ["explain", "job-0500"], ["doctor"]):
        began = time.monotonic()
        done = tickoff(*command, "--url", url, "--namespace", name)
        assert done.returncode in (0, 1), done.stderr
        assert time.monotonic() - began < 10
    assert "100 servers, 1,000 jobs" in tickoff("ls", "--url", url, "--namespace", name).stdout
