"""A short run of chaos: processes are killed and stopped, their store fails, no promise is broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from chaos.nemesis import schedule
from chaos.stores import STORES, Store

from tests.processes import ROOT

FULL = os.environ.get("TICKOFF_FULL")
SHORT = ("sqlite", "redis")


@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
@pytest.mark.parametrize("store", STORES if FULL else SHORT)
def test_no_promise_is_broken_under_chaos(store: str) -> None:
    """Fences grow, accepted writes do not go back, ticks start once, and all goes on afterwards."""
    command = [sys.executable, "-m", "chaos", "--store", store, "--minutes", "0.2", "--seed", "11"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=230, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-3000:]
    counts = {what: int(number.replace(",", "")) for number, what in _counts(ran.stdout)}
    assert counts["locks granted"] > 20
    assert counts["ticks ended well"] > 5
    assert counts["times: kill"] > 0
    assert counts["times: stop"] > 0


@pytest.mark.parametrize("bug", ["no_fence", "no_watermark"] if FULL else ["no_watermark"])
def test_chaos_notices_a_planted_bug(bug: str) -> None:
    """Else a run without violations would prove nothing."""
    environment = {**os.environ, "TICKOFF_PLANT": bug}
    command = [sys.executable, "-m", "chaos", "--store", "sqlite", "--minutes", "0.1", "--seed", "11"]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert ran.returncode == 1, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "violations" in ran.stdout, ran.stderr[-3000:]


def test_the_same_seed_draws_the_same_blows() -> None:
    """A run can be repeated, as far as real processes can."""
    store = Store(["sqlite://"], blows={"restart": lambda: None})
    assert schedule(5, 60, store) == schedule(5, 60, store) != schedule(6, 60, store)
    assert {"kill", "stop", "restart"} == {blow.kind for blow in schedule(5, 60, store)}


def _counts(told: str) -> list[tuple[str, str]]:
    lines = (line.strip().partition(" ") for line in told.splitlines() if line.startswith("  "))
    return [(number, what) for number, _, what in lines if number.replace(",", "").isdigit()]
