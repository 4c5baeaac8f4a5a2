"""How long a person waits: each command against 1,000 jobs, 100,000 runs and 100 servers, on each store."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from dev.servers import mariadb_server, postgres_server, redis_server  # noqa: E402
from tests.seeded import seed  # noqa: E402

COMMANDS: dict[str, list[str]] = {
    "ls": ["ls"],
    "ls --json": ["ls", "--json"],
    "history": ["history", "job-0500"],
    "explain": ["explain", "job-0500"],
    "next": ["next", "job-0500"],
    "pause": ["pause", "job-0500", "--why", "bench"],
    "resume": ["resume", "job-0500"],
    "trigger": ["trigger", "job-0500"],
    "doctor": ["doctor"],
}

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed program finds itself compiled."""


@contextmanager
def urls() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers: list[Callable[[], object]] = [redis_server, postgres_server, mariadb_server]
        started = [stack.enter_context(server()) for server in servers]  # type: ignore[arg-type,var-annotated]
        yield {"sqlite": f"sqlite:///{folder}/tickoff.db"} | {one.name: one.url for one in started}


def seconds(url: str, command: list[str]) -> tuple[float, float]:
    """How long it took, and how long it kept a core busy; the store's own work is in the first alone."""
    began = time.perf_counter()
    full = [sys.executable, "-m", "tickoff", *command, "--url", url, "--namespace", "bench"]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(full, stdout=said, stderr=said, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        said.seek(0)
        text = said.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 or command == ["doctor"], text  # which finds something amiss
    assert "Traceback" not in text, text
    return took, usage.ru_utime + usage.ru_stime


def best(url: str, command: list[str]) -> str:
    """The shortest of a few runs."""
    took, busy = (min(figures) for figures in zip(*(seconds(url, command) for _ in range(5)), strict=True))
    return f"{took:6.2f} s  {busy:6.2f} s"


def main() -> None:
    print(f"{'':14} {'took':>6}    {'CPU':>6}    of the command, with Python's start")
    print(f"{'memory://':14} {best('memory://', ['ls'])}")
    with urls() as stores:
        for name, url in stores.items():
            seed(url, "bench")
            print(f"\n{name}")
            for label, command in COMMANDS.items():
                print(f"  {label:12} {best(url, command)}", flush=True)


if __name__ == "__main__":
    main()
