"""`tickoff doctor` says what is amiss, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import FAILED
from .opening import as_text, fleet, fleet_options, json_option

if TYPE_CHECKING:
    from ..stores.base import Finding


@click.command(short_help="Look for what is amiss, and say what to do.")
@click.option("--ignore", multiple=True, metavar="CHECK", help="Accept what this check finds; repeatable.")
@fleet_options
@json_option
def doctor(
    ignore: tuple[str, ...], url: str | None, namespace: str | None, app: str | None, as_json: bool
) -> int:
    """Look at the store, the servers, and the jobs: clocks, eviction, schedules, leases, durations.

    Each finding says what can go wrong and what to do. The status is 1 when there is one that is not ignored.
    """
    import logging

    logging.getLogger("tickoff").setLevel(logging.ERROR)  # what would be warned of is among the findings
    with fleet(url, namespace, app) as jobs:
        found = jobs.doctor()
    left = tuple(finding for finding in found.findings if finding.check not in ignore)
    if as_json:
        click.echo(as_text(found))
    else:
        click.echo("\n".join([_heading(found.store, found.servers, found.jobs), *_page(left)]))
    return FAILED if left else 0


def _heading(store: str, servers: int, jobs: int) -> str:
    from ..operating.words import counted

    return f"{store}: {counted(servers, 'server')}, {counted(jobs, 'job')}"


def _page(findings: tuple[Finding, ...]) -> list[str]:
    from .paint import paint

    if not findings:
        return [paint("nothing is amiss", "green")]
    return [line for finding in findings for line in _told(finding)]


def _told(finding: Finding) -> list[str]:
    from .paint import paint

    return [
        "",
        f"{paint(finding.check, 'red')}: {_wrapped(finding.what, len(finding.check) + 2)}",
        f"  danger: {_wrapped(finding.danger, 10)}",
        f"  remedy: {_wrapped(finding.remedy, 10)}",
    ]


def _wrapped(text: str, taken: int) -> str:
    """The text in lines of the terminal's width, the first of which has something before it."""
    from .paint import width

    lines = click.wrap_text(" " * taken + text, width(), subsequent_indent="    ")
    return lines.strip()
