"""The tests can fail: each bug planted on purpose is noticed by at least one of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .planted import PLANTS
from .processes import ROOT


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_noticed(bug: str) -> None:
    """With the bug in place, the tests that guard against it fail."""
    environment = {**os.environ, "TICKOFF_PLANT": bug}
    for run in PLANTS[bug].runs:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *run]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 1, ran.stdout[-3000:]
        assert "1 failed" in ran.stdout, ran.stdout[-3000:]
        assert "SyntaxError" not in ran.stdout
        assert "Error compiling script" not in ran.stdout
