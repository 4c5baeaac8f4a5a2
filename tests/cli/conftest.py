"""The command line as a user meets it: a process, its output, its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Tickoff = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user's environment, nothing of ours set; temporary files go where the test can see them."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TICKOFF_")}
    return {**inherited, "TMPDIR": str(temporary)}


@pytest.fixture
def tickoff(tmp_path: Path, environment: dict[str, str]) -> Tickoff:
    """Run `tickoff` with arguments, and with variables set by keyword."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tickoff", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
