"""What the commands share: options, the job they are about, and the two ways to answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ...errors import TickoffError
from ..apps import app_option, load_app

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ...records.operator import Records

json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


def _names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names that begin with what is typed; an application that cannot be imported completes nothing."""
    from click.shell_completion import CompletionItem

    try:
        known = load_app(context.params.get("app")).record_names()
    except TickoffError:
        return []
    return [CompletionItem(name) for name in known if name.startswith(typed)]


name_argument = click.argument("name", shell_complete=_names)

__all__ = ["app_option", "json_option", "name_argument", "opened", "say"]


@contextmanager
def opened(app: str | None, name: str) -> Iterator[Records]:
    """The records of one job; the application's connections are closed afterwards."""
    jobs = load_app(app)
    try:
        records = jobs.records(name)
        try:
            yield records
        finally:
            records.close()
    finally:
        jobs.close()


def say(answer: dict[str, Any] | list[dict[str, Any]], text: str, *, as_json: bool) -> None:
    """The answer, for programs or for people."""
    click.echo(json.dumps(answer, indent=1, default=str) if as_json else text)
