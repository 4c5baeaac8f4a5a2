"""Writes what the documentation takes from elsewhere: example files, docstrings, the command line's own help.

`python -m dev.pages` rewrites them in place; the tests say when one is out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click

import tickoff
from tickoff.cli import program
from tickoff.operating.doctor import Diagnosis
from tickoff.operating.explain import Explanation
from tickoff.operating.past import PastRun
from tickoff.operating.status import (
    JobStatus,
    LeaderStatus,
    LockStatus,
    RecordStatus,
    ServerStatus,
    Status,
)
from tickoff.records.onepass import Passed
from tickoff.records.operator import Records
from tickoff.records.progress import Progress
from tickoff.records.tally import Counts
from tickoff.stores.base import Finding
from tickoff.ticks.events import Event

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r'^```(\w*) title="(examples/[^"]+)"\n.*?^```$', re.MULTILINE | re.DOTALL)
WRITTEN = "<!-- python -m dev.pages writes this page; change the docstring or the help it comes from -->\n"


def main() -> None:
    """Rewrite all pages that are out of date."""
    for page, text in renewed():
        if not page.exists() or page.read_text("utf-8") != text:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, "utf-8")


def renewed() -> Iterator[tuple[Path, str]]:
    """Each page that takes something from elsewhere, with the text it should have."""
    yield DOCS / "reference" / "api.md", api()
    yield DOCS / "reference" / "cli.md", commands()
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        if BLOCK.search(text):
            yield page, BLOCK.sub(_with_file, text)


def _with_file(block: re.Match[str]) -> str:
    language, path = block.groups()
    return f'```{language} title="{path}"\n{(ROOT / path).read_text("utf-8").rstrip()}\n```'


def commands() -> str:
    """The reference of the command line, from its own help."""
    parts = ["# Command line\n", WRITTEN, _COMMANDS_INTRODUCED]
    for words, command in _walk(("tickoff",), program):
        parts.append(f"## {' '.join(words)}\n\n```text\n{_help(words, command)}\n```\n")
    return "\n".join(parts)


_COMMANDS_INTRODUCED = """Every command answers `--help` with what stands here. The exit statuses of `once`
and `lock` are on [their page](../crontab.md#exit-statuses).
"""


def _walk(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The command, and those below it, in the order of the help."""
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            if below is not None and not below.hidden:
                yield from _walk((*words, name), below)


def _help(words: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(words), terminal_width=100, max_content_width=100)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def api() -> str:
    """The reference of the package, from its docstrings."""
    parts = ["# Python\n", WRITTEN, _API_INTRODUCED]
    parts += [_described(name, getattr(tickoff, name)) for name in sorted(tickoff.__all__, key=_rank)]
    parts += [_RETURNED_INTRODUCED, *(_described(kind.__name__, kind) for kind in _RETURNED)]
    return "\n".join(parts)


_API_INTRODUCED = """These names are the package: `from tickoff import …`. Whatever else modules hold
may change. The options at length: of [`cron` and `every`](../ticks.md#options), of
[`each`](../records.md#options), of [`once`](../crontab.md#functions), of [locks](../locks.md).

A `Duration` is `"90s"`, `"5m"`, `"1h30m"`, a number of seconds, or a `timedelta`. `Recover` is `"next"` or
`"now"`, `CatchUp` `"none"` or `"latest"`, `OnOutage` `"skip"` or `"wait"`;
`Columns` are names: one, or several.
"""

_RETURNED_INTRODUCED = """---

What the methods above return, and what listeners are told, is not among the public names, but its
fields and methods are.
"""

_RETURNED = (
    *(Records, Passed, Progress, Counts),
    *(Status, JobStatus, RecordStatus, LeaderStatus, LockStatus, ServerStatus, PastRun),
    *(Explanation, Diagnosis, Finding, Event),
)

_FIRST = ("Tickoff", "Tick", "Lease", "Ran", "Skipped", "upsert", "Defer", "Reject", "Pause")


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _described(name: str, what: Any) -> str:
    if not inspect.isclass(what):
        return _function(name, what, "##")
    signature = _signature(name, what) if name in _MADE_BY_USERS else ""
    parts = [f"## {name}\n", signature, f"{inspect.getdoc(what)}\n", _fields(what)]
    parts += [_member(name, member, found) for member, found in sorted(_members(what), key=_asked_first)]
    return "\n".join(part for part in parts if part)


_MADE_BY_USERS = ("Tickoff", "Defer", "Reject", "Pause")


def _fields(kind: type) -> str:
    """What a plain value carries."""
    names = [f"`{one.name}`" for one in fields(kind)] if is_dataclass(kind) else []
    return f"Fields: {', '.join(names)}.\n" if names else ""


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """What users call."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("tickoff"):
            continue
        for name, found in vars(base).items():
            shown = isinstance(found, property) or inspect.isfunction(found)
            if shown and not name.startswith("_") and name not in seen | _INTERNAL:
                seen.add(name)
                yield name, found


_INTERNAL = {
    *("after_fork", "expire", "hold", "inherited", "limit", "lose"),
    *("on_loss", "over", "overran", "renewed", "settled", "unheard"),
    *("worker", "canary", "plus"),
}
"""Public to our own modules only."""

_ASKED_FIRST = (
    "cron",
    "every",
    "each",
    "leader",
    "once",
    "serve",
    "lock",
    "race",
    "run_with_lock",
    "records",
)


def _asked_first(member: tuple[str, Any]) -> int:
    """The decorators before what is asked about them; the rest stays in the order of the source."""
    return _ASKED_FIRST.index(member[0]) if member[0] in _ASKED_FIRST else len(_ASKED_FIRST)


def _member(owner: str, name: str, found: Any) -> str:
    if isinstance(found, property):
        return f"### {owner}.{name}\n\n{inspect.getdoc(found)}\n"
    return _function(f"{owner}.{name}", found, "###")


def _function(title: str, function: Callable[..., Any], mark: str) -> str:
    called = title.rpartition(".")[2]
    return "\n".join([f"{mark} {title}\n", _signature(called, function), f"{inspect.getdoc(function)}\n"])


def _signature(name: str, what: Callable[..., Any]) -> str:
    """The signature, a parameter on each line where it is long."""
    signature = inspect.signature(what)
    given = [one for one in signature.parameters.values() if one.name != "self"]
    text = f"{name}{signature.replace(parameters=given)}"
    if len(text) > 90:
        text = f"{name}(\n" + "".join(f"    {line},\n" for line in _lines(given)) + ")" + _returns(signature)
    return f"```text\n{_unquoted(text)}\n```\n"


def _unquoted(text: str) -> str:
    """Annotations as they are written; they come as texts. A function that is a default is called so."""
    text = re.sub(r"<function \w+ at 0x\w+>", "…", text)
    return re.sub(r"""(: |-> )(["'])(.*?)\2(?=,| = |\)|$)""", r"\1\3", text, flags=re.MULTILINE)


def _lines(given: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or one.kind is one.VAR_POSITIONAL
        yield str(one)


def _returns(signature: inspect.Signature) -> str:
    empty = signature.return_annotation is inspect.Signature.empty
    return "" if empty else f" -> {signature.return_annotation}"


if __name__ == "__main__":
    main()
