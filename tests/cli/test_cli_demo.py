"""`tickoff demo`: the verdict is counted, the bug is seen, and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tickoff.cli.demo.show import PlainShow
from tickoff.cli.demo.verdict import Turn, verdict_on

SERVERS, ROUNDS = 10, 3
RIGHT = [
    Turn(round=r, server=s, pid=100 + s, won=s == r, fence=r if s == r else 0)
    for r in range(1, ROUNDS + 1)
    for s in range(1, SERVERS + 1)
]

EVERYBODY_WINS = """\
import os
from tickoff import Tickoff
race = Tickoff.race
Tickoff.race = lambda self, name, *, ttl: race(self, f"{name}-{os.getpid()}", ttl=ttl)
"""


def test_ten_processes_race_and_one_wins_each_round(tickoff, environment):
    """On a SQLite file of its own, in plain lines of 80 columns at most, and the file is gone afterwards."""
    done = tickoff("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "120 races in 12 rounds, 12 winners, 0 doubles, 0 rounds without a winner." in done.stdout
    assert "It held" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert _files(environment) == []


def test_the_lines_it_ends_with_run_as_they_are(tmp_path, capsys):
    """Copied into Python they run the function."""
    PlainShow().closing(verdict_on(RIGHT, SERVERS, ROUNDS))
    lines = capsys.readouterr().out.splitlines()[-3:]
    done = subprocess.run(
        [sys.executable], input="\n".join(lines), cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("one server at a time\n", "")


def test_the_demo_sees_a_store_that_lets_everybody_win(tickoff, environment, tmp_path):
    """With a bug planted, each server racing for a name of its own, the verdict and the status say so."""
    (tmp_path / "sitecustomize.py").write_text(EVERYBODY_WINS)
    done = tickoff("demo", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "12 rounds, 120 winners, 12 doubles" in done.stdout
    assert "IT DID NOT HOLD" in done.stdout


def test_memory_is_refused_because_ten_processes_cannot_share_it(tickoff):
    """It would let everybody win."""
    done = tickoff("demo", "--url", "memory://")
    assert (done.returncode, done.stdout) == (2, "")
    assert "memory:// is seen by one process only" in done.stderr


@pytest.mark.parametrize(
    ("moment", "number"),
    [("servers", signal.SIGINT), ("    1", signal.SIGINT), ("    1", signal.SIGTERM)],
    ids=["Ctrl-C at the start", "Ctrl-C in the race", "SIGTERM in the race"],
)
def test_an_interrupt_leaves_no_process_and_no_file(environment, tmp_path, moment, number):
    """While the servers start (after the title) or while they race (after the first round)."""
    with _started(environment, tmp_path) as demo:
        _await_line(demo, moment)
        demo.send_signal(number)
        _, said = demo.communicate(timeout=20)
    assert (demo.returncode, said.strip()) == (128 + number, "")
    assert _racers(environment) == []
    assert _files(environment) == []


def test_servers_of_a_demo_that_was_killed_leave_by_themselves(environment, tmp_path):
    """Nobody is left to end them, so they notice."""
    with _started(environment, tmp_path) as demo:
        _await_line(demo, "    1")
        demo.kill()
    deadline = time.monotonic() + 20
    while _racers(environment) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _racers(environment) == []


def test_a_right_count_holds():
    """Every round has all servers, one winner and a greater fence."""
    assert verdict_on(RIGHT, SERVERS, ROUNDS).held


@pytest.mark.parametrize(
    "wrong",
    [
        [*RIGHT[:-1], replace(RIGHT[-1], won=True, fence=9)],
        [replace(turn, won=False) if turn.round == 2 else turn for turn in RIGHT],
        [turn for turn in RIGHT if turn.round != 2],
        RIGHT[:-1],
        [replace(turn, fence=1) if turn.won else turn for turn in RIGHT],
        [],
    ],
    ids=["a double", "no winner", "no round", "a server absent", "fences stand still", "no logs"],
)
def test_a_wrong_count_does_not_hold(wrong):
    """Each way in which the logs can be wrong is noticed."""
    assert not verdict_on(wrong, SERVERS, ROUNDS).held


def _started(environment: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tickoff", "demo"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _await_line(demo: subprocess.Popen[str], part: str) -> None:
    assert demo.stdout is not None
    assert any(part in line for line in demo.stdout)


def _racers(environment: dict[str, str]) -> list[str]:
    """The processes that keep a log in this test's folder."""
    listed = subprocess.run(["ps", "-Awwo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "demo.racer" in line and environment["TMPDIR"] in line]


def _files(environment: dict[str, str]) -> list[Path]:
    return list(Path(environment["TMPDIR"]).iterdir())
