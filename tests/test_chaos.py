"""A short run of chaos: processes are killed and stopped, their store fails, no promise is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chaos.nemesis import schedule
from chaos.store import Store
from chaos.stores import CANNOT, STORES

from tests.conftest import IN_CI
from tests.processes import ROOT

_MEMORY = Path("/dev/shm")

FULL = os.environ.get("TICKOFF_FULL")


@contextmanager
def chaos(store: str, seconds: int, members: int, bug: str = "") -> Iterator[subprocess.Popen[str]]:
    """A run of its own."""
    command = [sys.executable, "-m", "chaos", "--store", store, "--seed", "11"]
    command += ["--minutes", str(seconds / 60), "--members", str(members)]
    environment = {**os.environ, "TICKOFF_PLANT": bug}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with (
        TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder,
        subprocess.Popen([*command, "--folder", folder], cwd=ROOT, env=environment, **pipes) as process,
    ):
        yield process
        process.terminate()


def told_by(run: subprocess.Popen[str], limit: float) -> str:
    """What a run told that broke no promise; skipped where its store cannot be put up."""
    told, _ = run.communicate(timeout=limit)
    if run.returncode == CANNOT and not (IN_CI and "not installed" in told):
        pytest.skip(told)
    assert run.returncode == 0, told[-5000:]
    return told


@pytest.mark.timeout(300)
def test_in_short_no_promise_is_broken_and_a_planted_bug_is_noticed() -> None:
    """Beside each other, for they mostly wait; the bug is that a finished tick may be started again."""
    with (
        chaos("sqlite", 4, 3) as sqlite,
        chaos("redis", 4, 3) as redis,
        chaos("sqlite", 4, 3, "no_watermark") as planted,
    ):
        for one in (sqlite, redis):
            told = told_by(one, 270)
            assert counts_of(told)["locks granted"] > 10, told
            assert counts_of(told)["records DONE"] == counts_of(told)["records"] > 50, told
        told, _ = planted.communicate(timeout=270)
        assert planted.returncode == 1, told
        assert "was started" in told, told


@pytest.mark.skipif(not FULL, reason="the short form is enough, but for TICKOFF_FULL=1")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("store", STORES)
def test_no_promise_is_broken_under_chaos(store: str) -> None:
    """Fences grow, accepted writes do not go back, ticks start once, records are DONE once, all goes on."""
    with chaos(store, 24, 8) as run:
        counts = counts_of(told_by(run, 390))
    assert counts["locks granted"] > 20
    assert counts["ticks ended well"] > 5
    assert counts["times: kill"] > 0
    assert counts["times: stop"] > 0


@pytest.mark.skipif(not FULL, reason="the short form is enough, but for TICKOFF_FULL=1")
@pytest.mark.parametrize("bug", ["no_fence", "no_watermark"])
def test_chaos_notices_a_planted_bug(bug: str) -> None:
    """Else a run without violations would prove nothing."""
    with chaos("sqlite", 12, 8, bug) as run:
        told, _ = run.communicate(timeout=170)
    assert run.returncode == 1, told[-3000:]
    assert "violations" in told


def test_the_same_seed_draws_the_same_blows() -> None:
    """A run can be repeated, as far as real processes can."""
    store = Store(["sqlite://"], seldom={"restart": _nothing})
    members = {"kill": _nothing, "stop": _nothing}
    drawn = schedule(5, 60, store, members, 8)
    assert drawn == schedule(5, 60, store, members, 8) != schedule(6, 60, store, members, 8)
    assert {"kill", "stop", "restart"} == {stroke.kind for stroke in drawn}


def _nothing(_whom: int, _length: float) -> None:
    """A blow that does nothing."""


def counts_of(told: str) -> dict[str, int]:
    """The counts that a run tells at its end."""
    lines = (line.strip().partition(" ") for line in told.splitlines() if line.startswith("  "))
    return {
        what: int(number.replace(",", "")) for number, _, what in lines if number.replace(",", "").isdigit()
    }
