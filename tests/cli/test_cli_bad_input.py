"""Every option and argument of every command, given nonsense: a status and a line that says why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import sqlalchemy as sa

from tickoff import cli

NONSENSE = ["", " ", "\ud800", "{x}", "a\nb", "x" * 10_000, "5 m", "-5s", "'; drop table t; --", "%s", "٣s"]
NONSENSE += [
    "nan",
    "--",
    "-x",
    "\0",
    "9" * 400,
    "🙂",
    "redis://u:p/w@h",
    "foo://x",
    "../../etc/passwd",
    "..",
    "a:b:c",
]

APP = """
from tickoff import Tickoff
jobs = Tickoff("memory://", database="sqlite:///shop.db")
@jobs.each("contacts", status="status", name="job")
def work(row): ...
"""

LONG_SHOWS = {"demo"}
"""Commands that would go on for a while where an option is right; they have tests of their own."""


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands there are, with what to type."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif name not in LONG_SHOWS:
            yield (*path, name), command


def ways(command: click.Command) -> Iterator[tuple[list[str], bool]]:
    """What to type before each value, and whether the value stands where a name does."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            yield [], True
        elif isinstance(parameter, click.Option) and not parameter.is_flag:
            yield [parameter.opts[-1]], False


COMMANDS = dict(commands(cli.program))


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application over an empty table, and a store, both named in the environment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nonsense_app.py").write_text(APP, "utf-8")
    engine = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE contacts (id INTEGER PRIMARY KEY, answer TEXT)")
    engine.dispose()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nonsense_app", raising=False)
    monkeypatch.setenv("TICKOFF_URL", "memory://")
    monkeypatch.setenv("TICKOFF_APP", "nonsense_app")


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The status and stderr of the command line, in this process: what is no exit status is raised."""
    monkeypatch.setattr(sys, "argv", ["tickoff", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert isinstance(left.value.code, int)
    return left.value.code, capfd.readouterr().err


@pytest.mark.usefixtures("application")
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_nonsense_is_answered_by_a_status_and_a_line(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No traceback, whichever option has it; where it is refused, the last line says why."""
    run(["records", "install", "job"], monkeypatch, capfd)
    command, failed = COMMANDS[path], 0
    wraps = ["--", "true"] if path[-1] in {"once", "lock"} else []
    base = {"once": ["--every", "1h"], "uninstall": ["--yes"]}.get(path[-1], [])
    for option, names in ways(command):
        for value in NONSENSE:
            name = [value] if names else ["job"] if any(p.name == "name" for p in command.params) else []
            typed = [*path, *base, *option, *([] if names else [value]), *name, *wraps]
            status, said = run(typed, monkeypatch, capfd)
            assert "Traceback" not in said, typed
            assert 0 <= status <= 255
            if status:
                failed += 1
                last = said.strip().splitlines()[-1]
                assert last.startswith(("Error:", "tickoff:")), (typed, said)
                assert len(last) < 1000 or last.startswith("Error:")  # click repeats what was typed
    assert failed or not list(ways(command))
