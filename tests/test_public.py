"""The public surface: few names, each explained, cheap to import, and typed for those who use it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tickoff

ROOT = Path(__file__).parent.parent

CAP = 14
"""The design allows no more public names."""

DESIGNED = {
    "Defer",
    "Lease",
    "LeaseLost",
    "LockHeld",
    "Pause",
    "Ran",
    "Reject",
    "Skipped",
    "StaleFence",
    "StoreUnreachable",
    "Tick",
    "Tickoff",
    "TickoffError",
    "upsert",
}
"""All names there will be; those of ticks and records come with them."""

HEAVY = ("sqlalchemy", "redis", "psycopg", "pymysql", "click", "rich")


def test_the_public_names_are_exactly_all() -> None:
    """What can be imported is what `__all__` lists, which is what `dir()` shows; each of them is there."""
    assert dir(tickoff) == tickoff.__all__ == sorted(tickoff.__all__)
    assert all(getattr(tickoff, name).__name__ == name for name in tickoff.__all__)


def test_a_name_that_is_not_there_is_refused() -> None:
    """Though names are loaded when they are first asked for."""
    with pytest.raises(AttributeError, match="Tickof"):
        _ = tickoff.Tickof


def test_there_are_no_more_names_than_the_design_allows() -> None:
    """A name that is not in the design is not public."""
    assert len(DESIGNED) == CAP
    assert set(tickoff.__all__) <= DESIGNED


@pytest.mark.parametrize("name", tickoff.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    """Each name has a docstring of its own, and so has each public member of a class."""
    public = getattr(tickoff, name)
    assert vars(public)["__doc__"] if inspect.isclass(public) else public.__doc__
    members = vars(public).items() if inspect.isclass(public) else ()
    silent = [
        member
        for member, value in members
        if not member.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and not value.__doc__
    ]
    assert silent == []


def test_importing_tickoff_imports_no_driver() -> None:
    """What a program does not use it does not pay for."""
    code = f"import sys, tickoff; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_making_and_naming_connects_to_nothing_and_starts_no_thread() -> None:
    """An object at module level costs nothing where it is not used."""
    code = (
        "import threading, tickoff\n"
        "jobs = tickoff.Tickoff('memory://')\n"
        "lock = jobs.lock('name', ttl='60s', wait='10s')\n"
        "unreachable = tickoff.Tickoff('redis://127.0.0.1:1/0').lock('name')\n"
        "tickoff.Tickoff()\n"
        "print(threading.active_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "1", "")


TYPED = """
from typing import assert_type

from tickoff import Lease, Ran, Skipped, Tickoff

jobs = Tickoff("memory://")


def count() -> int:
    return 1


def fenced(lease: Lease) -> str:
    return f"{lease.fence}"


async def fetch() -> list[str]:
    return []


async def fenced_fetch(lease: Lease) -> bytes:
    return b""


assert_type(jobs.race("name", ttl="30s"), Lease | Skipped)
assert_type(jobs.run_with_lock("name", count, ttl="60s"), Ran[int] | Skipped)
assert_type(jobs.run_with_lock("name", fenced), Ran[str] | Skipped)


async def main() -> None:
    assert_type(await jobs.run_with_lock("name", fetch, ttl="60s"), Ran[list[str]] | Skipped)
    assert_type(await jobs.run_with_lock("name", fenced_fetch), Ran[bytes] | Skipped)
    async with jobs.lock("name", wait="10s") as lease:
        assert_type(lease, Lease)


with jobs.lock("name") as lease:
    assert_type(lease, Lease)

verdict = jobs.race("name")
if verdict:
    assert_type(verdict, Lease)
if isinstance(verdict, Skipped):
    assert_type(verdict.by, str)

ran = jobs.run_with_lock("name", count)
if ran:
    assert_type(ran.value, int)
else:
    assert_type(ran, Skipped)
"""

WRONG = """
from tickoff import Tickoff

jobs = Tickoff("memory://")
jobs.race("name", ttl=None)
jobs.run_with_lock("name", 42)
jobs.race("name").fence
"""


def mypy(text: str, folder: Path) -> tuple[int, str]:
    """Check a user's file, strictly, against the types that Tickoff ships."""
    file = folder / "user.py"
    file.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--strict", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_types_tell_what_a_race_and_a_run_give_back(tmp_path: Path) -> None:
    """`run_with_lock` keeps the value's type for def and async def; `race` is a lease or a `Skipped`."""
    status, said = mypy(TYPED, tmp_path)
    assert status == 0, said


def test_the_types_refuse_what_would_fail(tmp_path: Path) -> None:
    """A wrong call is an error before it runs, so the check above checks something."""
    status, said = mypy(WRONG, tmp_path)
    assert status == 1, said
    assert said.count("error:") == 3, said
