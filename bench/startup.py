"""What a crontab line costs before its command runs: `tickoff once … -- true` beside `flock … true`.

Each is a process of its own, as cron starts it, with its modules compiled before; time and CPU are those
of it and its child, as the kernel says them, memory is its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import postgres_server, redis_server  # noqa: E402

from bench import page, report  # noqa: E402

_TICKOFF = str(Path(sys.executable).with_name("tickoff"))
_FLOCK = shutil.which("flock") or "flock"
_PASS = "python -c pass"


@dataclass(frozen=True)
class Cost:
    """Of one process and its child: seconds until it ended, seconds of CPU."""

    seconds: float
    cpu: float


def cost(command: list[str]) -> Cost:
    """Start it and wait for it."""
    begun = time.perf_counter()
    started = os.posix_spawn(command[0], command, _environment(), file_actions=[_QUIETLY])
    _, status, used = os.wait4(started, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.perf_counter() - begun, used.ru_utime + used.ru_stime)


_QUIETLY = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def memory(command: list[str]) -> float:
    """The peak of a process in MiB, as its child reads it; that of Python as it reads it itself."""
    told = subprocess.run(command, env=_environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(told.split()[1]) / 1024


_OF_PARENT = ["sh", "-c", "grep VmHWM /proc/$PPID/status"]
_OF_SELF = "; print(*[line for line in open('/proc/self/status') if 'VmHWM' in line])"

Starts = dict[str, Callable[[str, bool], list[str]]]
"""What is started, given a new name, and whether it is to tell its memory."""


def contenders(redis: str, postgres: str, folder: str) -> Starts:
    """All of them."""

    def flock(_name: str, telling: bool) -> list[str]:
        return [_FLOCK, f"{folder}/lock", *(_OF_PARENT if telling else ["true"])]

    return {
        "flock … true": flock,
        _PASS: _python("pass"),
        "python -c 'import redis'": _python("import redis"),
        "python -c 'import sqlalchemy'": _python("import sqlalchemy"),
        "tickoff once, Redis": _once(redis),
        "tickoff once, PostgreSQL": _once(postgres),
        "tickoff once, SQLite": _once(f"sqlite:///{folder}/tickoff.db"),
    }


def _once(url: str) -> Callable[[str, bool], list[str]]:
    def command(name: str, telling: bool) -> list[str]:
        words = [_TICKOFF, "once", name, "--every", "1h", "--url", url, "--"]
        return [*words, *(_OF_PARENT if telling else ["true"])]

    return command


def _python(code: str) -> Callable[[str, bool], list[str]]:
    return lambda _name, telling: [sys.executable, "-c", code + _OF_SELF * telling]


def main() -> int:
    """Measure in turns, print, write."""
    parser = ArgumentParser(description=__doc__, prog="bench/startup.py")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/performance.md")
    options = parser.parse_args()
    context = report.Context.of_now(f"--rounds {options.rounds}", "bench/startup.py")
    context = replace(
        context, settings="modules compiled before; servers on the same machine, without a network"
    )
    with redis_server() as redis, postgres_server() as postgres, tempfile.TemporaryDirectory() as folder:
        starts = contenders(redis.url, postgres.url, folder)
        held = {label: memory(start("bench", True)) for label, start in starts.items()}
        rounds = [
            {label: cost(start(f"bench-{turn}", False)) for label, start in starts.items()}
            for turn in range(options.rounds)
        ]
    text = f"{_table(rounds, held)}\n\n{report.told(context)}"
    print(text)
    if options.write:
        page.put(page.PAGE, "bench/startup.py writes", text)
    return 0


def _table(rounds: list[dict[str, Cost]], held: dict[str, float]) -> str:
    lines = ["| | time | lowest to highest | CPU | memory | time beside `python -c pass` |"]
    return "\n".join([*lines, "|---|---|---|---|---|---|", *(_row(label, rounds, held) for label in held)])


def _row(label: str, rounds: list[dict[str, Cost]], held: dict[str, float]) -> str:
    times = [one[label].seconds * 1000 for one in rounds]
    cpu = median(one[label].cpu for one in rounds) * 1000
    beside = median(one[label].seconds / one[_PASS].seconds for one in rounds)
    spread = f"{min(times):.0f} to {max(times):.0f} ms"
    figures = f"{median(times):.0f} ms | {spread} | {cpu:.0f} ms | {held[label]:.0f} MiB | {beside:.1f}"
    return f"| {label} | {figures} |"


if __name__ == "__main__":
    sys.exit(main())
