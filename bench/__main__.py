"""`python -m bench [PART …]`: measures side by side, and rewrites the figures of docs/performance.md.

`make bench PART=locks` is the same in an environment of its own, where the peers are installed.
"""

from __future__ import annotations

import re
import subprocess
import sys

from bench import page, report

ROOT = page.PAGE.parents[1]

PARTS: dict[str, list[list[str]]] = {
    "locks": [["bench/locks.py", "--write"]],
    "startup": [["bench/startup.py", "--write"]],
    "records": [
        ["bench/records.py", *("postgres", "sqlite", "mariadb"), "--write"],
        ["bench/records.py", *("drain", "snapshot", "sizes", "fleet"), "--write"],
        ["-m", "bench.peers", "--write"],
    ],
    "scheduler": [["bench/scheduler.py"]],
    "growth": [["-m", "bench.growth", "--write"]],
    "upsert": [["bench/upsert.py", "--write"]],
    "operating": [["bench/operating.py"]],
}

_PRINTS = ("bench/scheduler.py",)
"""It only prints, and has a block on the page all the same."""


def main() -> int:
    """Run the parts that were asked for, all without a word; 1 if a gate was missed."""
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    statuses = [_run(words) for part in wanted for words in PARTS[part]]
    return int(any(statuses))


def _run(words: list[str]) -> int:
    print(f"\n== {' '.join(words)}", flush=True)
    if words[0] in _PRINTS:
        return _taken_down(words)
    return subprocess.run([sys.executable, *words], cwd=ROOT).returncode


def _taken_down(words: list[str]) -> int:
    """What it prints goes into its block, too."""
    context = report.Context.of_now(" ".join(words[1:]), words[0])
    lines = []
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode == 0:
        report.rewrite_text(page.PAGE, "", context, lines)
        page.put_gates(page.PAGE, [lag_gate(lines)])
    return process.returncode


def lag_gate(lines: list[str]) -> page.Gate:
    """The aim for the scheduler, from the last and largest crowd that it printed."""
    lags = dict(re.findall(r"^  (.+?) +p50 .*?p99 +([\d.]+)", "\n".join(lines), re.MULTILINE))
    ratio = float(lags["Tickoff, threads, redis, 32 slots"]) / float(lags["APScheduler, threads"])
    name = "Scheduler, many jobs at once: p99 of the lag, Tickoff on Redis, beside APScheduler, threads"
    return page.Gate(name, "lag ≤ 1 times", f"{ratio:.2f} times", ratio <= 1)


if __name__ == "__main__":
    sys.exit(main())
