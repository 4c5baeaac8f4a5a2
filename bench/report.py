"""What was measured, as text and as tables between the markers of a page."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import page
from bench.ratios import Section, Verdict, spread

_PACKAGES = ("redis", "psycopg", "SQLAlchemy", "PyMySQL")
_PEERS = (
    *("apscheduler", "asyncpg", "celery", "dramatiq", "hiredis", "huey", "pgqueuer", "procrastinate"),
    *("python-redis-lock", "uvloop"),
)
_SERVERS = (("redis-server", ""), ("postgres", "lib/postgresql/*/bin"), ("mariadbd", "sbin"))


@dataclass(frozen=True)
class Context:
    """When, where and how something was measured."""

    script: str
    command: str
    date: str
    machine: str
    load: str
    versions: list[str]
    settings: str = (
        "Redis without persistence; PostgreSQL with fsync on; MariaDB flushing its log once a second; "
        "SQLite in WAL mode; all on the measuring machine, over loopback"
    )

    @classmethod
    def of_now(cls, arguments: str, script: str = "bench/locks.py") -> Context:
        """The context of a run that begins now."""
        return cls(
            script=script,
            command=f"python {script} {arguments}".rstrip(),
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            machine=_machine(),
            load=f"{os.getloadavg()[0]:.1f}",
            versions=[f"Python {platform.python_version()}", *_packages(), *_servers()],
        )


def as_text(section: Section) -> str:
    """The section for a terminal."""
    width = max(len(label) for label in section.times)
    lines = [f"\n{section.title}"]
    for label, times in section.times.items():
        one = spread(times)
        lines.append(
            f"  {label:{width}}  {one.median * 1e3:8.3f} ms  ({_range(one.low * 1e3, one.high * 1e3)})"
        )
    lines += [f"  {ratio_text(verdict)}" for verdict in section.verdicts]
    return "\n".join([*lines, f"  {section.note}"] if section.note else lines)


def misses(section: Section) -> list[str]:
    """A line for every gate that was missed."""
    lines = [f"{section.title}: {ratio_text(one)}" for one in section.verdicts if one.missed]
    return [*lines, f"{section.title}: {section.note}"] if section.spoilt else lines


def rewrite(target: Path, context: Context, sections: Sequence[Section], part: str = "") -> None:
    """Put the tables between the markers of the page; all else stays as it is."""
    page.put(target, f"{context.script} writes {part}".rstrip(), f"{_tables(sections)}\n{told(context)}")
    if target == page.PAGE:
        page.put_gates(target, [gate for section in sections for gate in gates_of(section)])


def rewrite_text(target: Path, part: str, context: Context, lines: Sequence[str]) -> None:
    """Put what a part of a script printed between its own markers, with the command above it."""
    about = f"`{context.command}`, {context.date}, load average at the start {context.load}"
    page.put(
        target,
        f"{context.script} writes {part}".rstrip(),
        "\n".join([f"{about}:", "", "```text", *lines, "```"]),
    )


def told(context: Context) -> str:
    """How it was measured, as a list."""
    return "\n".join(
        [
            f"- Command: `{context.command}`, {context.date}",
            f"- Machine: {context.machine}",
            f"- Load average at the start: {context.load}",
            f"- Versions: {', '.join(context.versions)}",
            f"- Settings: {context.settings}",
        ]
    )


def gates_of(section: Section) -> list[page.Gate]:
    """Those of its rules that have a limit."""
    return [_gate(section, one) for one in section.verdicts if one.rule.limit is not None]


def _gate(section: Section, verdict: Verdict) -> page.Gate:
    rule = verdict.rule
    name = f"{section.title}: {rule.of}, beside {rule.to}"
    return page.Gate(
        name, f"time ≤ {rule.limit:.3g} times", f"{verdict.ratio.median:.2f} times", not verdict.missed
    )


def _tables(sections: Sequence[Section]) -> str:
    lines = ["| measured | compared with | median of the ratios per round | quartiles | gate | |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [_ratio_row(section, one) for section in sections for one in section.verdicts]
    lines += ["", "| measured | contender | median | quartiles |", "|---|---|---|---|"]
    lines += [_time_row(section, label) for section in sections for label in section.times]
    return "\n".join(
        [*lines, "", *(f"- {section.title}: {section.note}" for section in sections if section.note)]
    )


def _ratio_row(section: Section, verdict: Verdict) -> str:
    ratio, limit = verdict.ratio, verdict.rule.limit
    gate, met = ("none", "") if limit is None else (f"≤ {limit:g}", "**missed**" if verdict.missed else "met")
    quartiles = _range(ratio.low, ratio.high, 2)
    return f"| {section.title} | {verdict.rule.to} | {ratio.median:.2f} | {quartiles} | {gate} | {met} |"


def _time_row(section: Section, label: str) -> str:
    one = spread(section.times[label])
    quartiles = _range(one.low * 1e3, one.high * 1e3)
    return f"| {section.title} | {label} | {one.median * 1e3:.3f} ms | {quartiles} ms |"


def ratio_text(verdict: Verdict) -> str:
    """What a rule found, in a line."""
    ratio, rule = verdict.ratio, verdict.rule
    above = (ratio.median / rule.limit - 1) * 100 if rule.limit else 0.0
    met = f"MISSED by {above:.0f} %" if verdict.missed else "met"
    gate = "" if rule.limit is None else f", gate ≤ {rule.limit:g}: {met}"
    return f"{rule.of} / {rule.to} = {ratio.median:.2f} ({_range(ratio.low, ratio.high, 2)}){gate}"


def _range(low: float, high: float, digits: int = 3) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    return f"{named[1] if named else platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def _packages() -> list[str]:
    return [*(f"{name} {version(name)}" for name in _PACKAGES), *_installed(_PEERS)]


def _installed(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


def _servers() -> list[str]:
    said = [_said(name, place) for name, place in _SERVERS]
    return [text for text in said if text]


def _said(name: str, place: str) -> str:
    """A server's name and version, if it is installed."""
    installed = sorted(str(found) for found in Path("/usr").glob(f"{place}/{name}")) if place else []
    binary = shutil.which(name) or (installed[-1] if installed else None)
    if binary is None:
        return ""
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"\d+\.\d+(\.\d+)?", told)
    return f"{name} {number[0]}" if number else name
