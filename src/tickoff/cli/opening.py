"""What the commands about a fleet share: options, the store they open, JSON, names completed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import ConfigError, TickoffError
from .apps import app_option, load_app
from .options import namespace_option, url_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..app import Tickoff

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
why_option = click.option("--why", required=True, metavar="TEXT", help="The reason, for those who ask later.")


def fleet_options(command: F) -> F:
    """`--url` and `--namespace`, or `--app`, which names both."""
    for option in (app_option, namespace_option, url_option):
        command = option(command)
    return command


def name_argument(command: F, *, required: bool = True) -> F:
    """NAME, completed from what the fleet knows."""
    return click.argument("name", required=required, shell_complete=_names)(command)


@contextmanager
def fleet(url: str | None, namespace: str | None, app: str | None) -> Iterator[Tickoff]:
    """The application, or just its store: a fleet is asked and steered without the code of its jobs."""
    jobs = _opened(url, namespace, app)
    try:
        yield jobs
    finally:
        jobs.close()


def _opened(url: str | None, namespace: str | None, app: str | None) -> Tickoff:
    if _given("app") and (_given("url") or _given("namespace")):
        raise click.UsageError("--app says which store and which namespace; leave out --url and --namespace")
    if app and not _given("url"):
        return load_app(app)
    if not url:
        raise ConfigError("no store is named; pass --url or set TICKOFF_URL, or name the application: --app")
    from ..app import Tickoff

    return Tickoff(url, namespace=namespace)


def _given(name: str) -> bool:
    """Whether an option stands on the command line, which counts more than the environment."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source(name) if context else None
    return source is click.core.ParameterSource.COMMANDLINE


def as_text(answer: Any) -> str:
    """A dataclass, or a sequence of them, as JSON; instants in UTC."""
    plain = [asdict(one) for one in answer] if isinstance(answer, tuple) else asdict(answer)
    return json.dumps(plain, indent=2, default=_told)


def _told(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON")  # pragma: no cover - no answer has anything else


def _names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The names that begin with what is typed; a store that does not answer completes nothing."""
    from click.shell_completion import CompletionItem

    options = context.params
    try:
        with fleet(options.get("url"), options.get("namespace"), options.get("app")) as jobs:
            status = jobs.status()
    except TickoffError:
        return []
    known = (one.name for kind in (status.jobs, status.leaders, status.locks) for one in kind)
    return [CompletionItem(name) for name in known if name.startswith(typed)]
