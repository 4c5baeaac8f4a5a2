"""`tickoff demo`: the show holds, a bug is seen, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import sqlalchemy as sa
from dev.servers import Server, redis_server

from tickoff.cli.demo.journal import Journal, Seen
from tickoff.cli.demo.play import YOUR_OWN
from tickoff.cli.demo.show import PlainShow, Tone
from tickoff.cli.demo.terminal import TerminalShow
from tickoff.cli.demo.verdict import Contact, Import, Verdict
from tickoff.stores.sql.engines import database_of

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("TICKOFF_FULL") == "1"
LONG = pytest.mark.skipif(not FULL, reason="one of the acts will do, unless TICKOFF_FULL=1")

HELD = "It held: every tick once, every row once."

EVERYBODY_FOR_HIMSELF = """\
import os
os.environ["TICKOFF_NAMESPACE"] = f"p{os.getpid()}"
"""
"""Run by every interpreter as it starts: servers that do not meet, so each of them wins."""

ONE_ACT = """\
import sys
from tickoff import cli
from tickoff.cli.demo import play
if sys.argv[1:]:
    play._ACTS = tuple(act for act in play._ACTS if act.__name__ == sys.argv[1])
sys.argv[1:] = ["demo"]
cli.main()
"""
"""`tickoff demo` with one act only, so that a test need not sit through the others."""

Tickoff = Callable[..., subprocess.CompletedProcess[str]]


# One whole show.


@pytest.mark.timeout(400)
def test_the_whole_show_holds_on_a_file_of_its_own_and_is_as_the_page_has_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """In plain lines of 80 columns at most; its file is gone afterwards."""
    done = _shown(environment, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert HELD in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert _files(environment) == []
    recorded = (ROOT / "docs" / "demo.md").read_text("utf-8").split("```text\n")[1].split("```")[0]
    assert _outline(done.stdout) == _outline(recorded)


@pytest.mark.skipif(not FULL, reason="a minute each")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["redis", "postgres", "mariadb"])
def test_the_whole_show_holds_on_a_server_and_leaves_nothing_there(
    environment: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Of all that bears the demo's mark."""
    server: Server = request.getfixturevalue(kind)
    before = _kept(server, kind)
    done = _shown(environment, tmp_path, "--url", server.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert HELD in done.stdout
    assert not {name for name in _kept(server, kind) - before if "demo" in name}


def test_the_lines_it_ends_with_run_as_they_are(tmp_path: Path) -> None:
    """Copied into Python they run the function."""
    done = subprocess.run(
        [sys.executable], input="\n".join(YOUR_OWN), cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("one server at a time\n", "")


@pytest.mark.timeout(300)
def test_servers_that_do_not_race_are_seen_and_the_status_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """With a bug planted, each server in a namespace of its own, ten emails go out, and the show ends."""
    (tmp_path / "sitecustomize.py").write_text(EVERYBODY_FOR_HIMSELF)
    done = _shown({**environment, "PYTHONPATH": str(tmp_path)}, tmp_path)
    assert done.returncode == 1
    assert "IT DID NOT HOLD" in done.stdout
    assert re.search(r"\d\d runs too many", done.stdout)
    assert "2. The server" not in done.stdout
    assert _files(environment) == []


def test_memory_is_refused_because_ten_processes_cannot_share_it(tickoff: Tickoff) -> None:
    """It would let everybody win."""
    done = tickoff("demo", "--url", "memory://")
    assert (done.returncode, done.stdout) == (2, "")
    assert "memory:// is seen by one process only" in done.stderr


def test_a_dead_server_is_told_once_and_nothing_is_started(tickoff: Tickoff, environment) -> None:
    """By us, and not by ten processes."""
    done = tickoff("demo", "--url", "redis://127.0.0.1:1/0")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.count("\n") == 1
    assert _files(environment) == []


# Whenever it is interrupted.


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("act", "moment", "number"),
    [
        ("", "servers, each", signal.SIGINT),
        pytest.param("", "servers, each", signal.SIGTERM, marks=LONG),
        pytest.param("doubled", "by its own clock", signal.SIGINT, marks=LONG),
        pytest.param("killed", "kill -9", signal.SIGINT, marks=LONG),
        ("stopped", "kill -STOP", signal.SIGINT),
        pytest.param("rows", "of 2,000 rows", signal.SIGINT, marks=LONG),
    ],
)
def test_an_interrupt_leaves_no_process_and_no_file(
    environment: dict[str, str], tmp_path: Path, act: str, moment: str, number: int
) -> None:
    """While the servers start, in each act, also while one of them is stopped."""
    with _started(environment, tmp_path, act) as demo:
        _await_line(demo, moment)
        children = _children(demo)
        demo.send_signal(number)
        _, said = demo.communicate(timeout=60)
    assert (demo.returncode, said.strip()) == (128 + number, "")
    assert len(children) >= 10
    assert _running(children) == set()
    assert _files(environment) == []


@pytest.mark.timeout(200)
def test_processes_of_a_demo_that_was_killed_leave_by_themselves(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Nobody is left to end them, so they notice; the system ends the one that is stopped."""
    with _started(environment, tmp_path, "stopped") as demo:
        _await_line(demo, "kill -STOP")
        children = _children(demo)
        demo.kill()
    deadline = time.monotonic() + 60
    while _running(children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(children) == 11
    assert _running(children) == set()


@pytest.mark.skipif(not FULL, reason="a server of its own")
@pytest.mark.timeout(200)
def test_a_store_that_goes_away_in_the_middle_ends_the_show_in_one_line(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Nothing can be taken away from it any more; processes and files can."""
    with (
        redis_server() as server,
        _started({**environment, "TICKOFF_URL": server.url}, tmp_path, "doubled") as demo,
    ):
        _await_line(demo, "by its own clock")
        children = _children(demo)
        server.stop(signal.SIGKILL)
        _, said = demo.communicate(timeout=150)
    assert demo.returncode == 125
    assert re.fullmatch(r"tickoff: .*\n", said)
    assert _running(children) == set()
    assert _files(environment) == []


# The verdict, of itself.

TICKS = (2000, 4000, 6000)
RIGHT = Verdict(
    seen=[
        *(Seen(what="email", server=1, tick=tick) for tick in TICKS),
        Seen(what="begun", job="import", tick=9000, fence=1),
        Seen(what="begun", job="import", tick=9000, fence=2, attempt=2),
        Seen(what="refused", job="import", tick=9000, fence=1, high=2),
        Seen(what="call", phone="p1", status=503),
        Seen(what="call", phone="p1", status=200, number="n1"),
        Seen(what="call", phone="p1", status=200, number="n1"),
        Seen(what="call", phone="p2", status=404),
    ],
    imports=[Import("import", 9000, 2)],
    contacts=[Contact("p1", "DONE", "n1"), Contact("p2", "FAILED", None)],
    rows=2,
    period=2000,
)


def test_a_right_count_holds() -> None:
    """Every tick has one run, the late write was refused, every row has its answer."""
    assert RIGHT.faults == []
    assert (RIGHT.ticks, RIGHT.runs, RIGHT.duplicates) == (4, 4, 0)
    assert (RIGHT.calls, RIGHT.put_off, RIGHT.repeated) == (4, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (replace(RIGHT, seen=[*RIGHT.seen, Seen(what="email", server=2, tick=4000)]), "1 runs too many"),
        (replace(RIGHT, imports=[*RIGHT.imports, Import("import", 9000, 1)]), "1 runs too many"),
        (replace(RIGHT, seen=[one for one in RIGHT.seen if one.tick != 4000]), "3 runs for 4 ticks"),
        (replace(RIGHT, imports=[]), "3 runs for 4 ticks"),
        (replace(RIGHT, seen=[one for one in RIGHT.seen if one.what != "refused"]), "no late write"),
        (replace(RIGHT, contacts=RIGHT.contacts[:1]), "1 of 2 rows decided"),
        (replace(RIGHT, contacts=[Contact("p1", "DONE", "n2"), RIGHT.contacts[1]]), "1 rows with a wrong"),
        (replace(RIGHT, contacts=[Contact("p1", "DONE", None), RIGHT.contacts[1]]), "1 rows with a wrong"),
        (replace(RIGHT, contacts=[RIGHT.contacts[0], Contact("p2", "DONE", None)]), "1 rows with a wrong"),
        (replace(RIGHT, contacts=[RIGHT.contacts[0], Contact("p2", "PENDING", None)]), "1 of 2 rows decided"),
        (replace(RIGHT, missed="nobody came"), "nobody came"),
    ],
)
def test_a_wrong_count_does_not_hold(wrong: Verdict, fault: str) -> None:
    """Each way in which the log and the database can be wrong is noticed, and named."""
    assert not wrong.held
    assert fault in "; ".join(wrong.faults)


def test_a_log_is_read_while_it_is_written(tmp_path: Path) -> None:
    """Half a line waits for its other half."""
    path = tmp_path / "log"
    line = Seen(what="email", tick=1).line()
    path.write_text(f"{line}\n{line[:9]}")
    journal = Journal(path)
    assert len(journal.all()) == 1
    with path.open("a") as log:
        log.write(f"{line[9:]}\n")
    assert list(journal.of("email", tick=1)) == journal.all()
    assert len(journal.all()) == 2


# How it looks.


def test_a_terminal_of_80_columns_shows_a_bar_that_goes_when_all_is_said() -> None:
    """Lines that stay are above it."""
    from rich.console import Console

    screen = StringIO()
    with TerminalShow(Console(file=screen, force_terminal=True, width=80)) as show:
        show.act(4, "rows")
        show.rows(500, 2000, 100.0)
        time.sleep(0.3)
        show.say("over", Tone.GOOD)
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen.getvalue())
    assert "━━━━" in text
    assert "500 of 2,000 rows    100/s   15 s to go" in text
    assert max(len(line) for line in re.split(r"[\r\n]", text)) <= 80
    assert text.rstrip().splitlines()[-1].strip() == "over"


def test_plain_lines_tell_of_what_moves_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe is not flooded."""
    show = PlainShow()
    for number in range(100):
        show.count(f"{number} s left")
        show.now("moving")
    assert capsys.readouterr().out.count("\n") == 1


def _shown(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tickoff", "demo", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=350,
    )


def _outline(text: str) -> list[str]:
    """What two shows have in common: titles and verdict, without figures."""
    lines = text.splitlines()
    titles = [line for line in lines if re.match(r"\d\. ", line)]
    verdict = lines[lines.index(next(line for line in titles if line.startswith("5. "))) :]
    return titles + [re.sub(r"[\d,.]+", "0", " ".join(line.split())) for line in verdict]


def _started(environment: dict[str, str], folder: Path, act: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ONE_ACT, *([act] if act else [])],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _await_line(demo: subprocess.Popen[str], part: str) -> None:
    assert demo.stdout is not None
    assert any(part in line for line in demo.stdout)


def _children(demo: subprocess.Popen[str]) -> set[str]:
    """The numbers of the processes it started."""
    return {pid for pid, parent, _ in _listed() if parent == str(demo.pid)}


def _running(pids: set[str]) -> set[str]:
    """Those of them that are still there."""
    return {pid for pid, _, command in _listed() if pid in pids and "tickoff.cli.demo." in command}


def _listed() -> list[list[str]]:
    listed = subprocess.run(["ps", "-Awwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    return [line.split(maxsplit=2) for line in listed.stdout.splitlines()]


def _files(environment: dict[str, str]) -> list[Path]:
    return list(Path(environment["TMPDIR"]).iterdir())


def _kept(server: Server, kind: str) -> set[str]:
    """Names that a server keeps: keys, or tables and the first column of their rows."""
    if kind == "redis":
        import redis

        with redis.Redis.from_url(server.url) as client:
            return {key.decode() for key in client.keys("*")}
    engine = database_of(server.url).open(5.0)
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        rows = [connection.exec_driver_sql(f"SELECT * FROM {table}").all() for table in tables]
    engine.dispose()
    return {*tables, *(str(row[0]) for table in rows for row in table)}
