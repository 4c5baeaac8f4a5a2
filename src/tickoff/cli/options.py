"""Options that several commands share, each with its twin in the environment."""

from __future__ import annotations

import click

from ..errors import ConfigError

url_option = click.option(
    "--url",
    envvar="TICKOFF_URL",
    show_envvar=True,
    help="The store, such as redis://localhost:6379/0 or postgresql://localhost/shop.",
)

namespace_option = click.option(
    "--namespace",
    envvar="TICKOFF_NAMESPACE",
    show_envvar=True,
    help="Prefix of every name; no colon.",
)


def required_url(url: str | None, instead: str = "") -> str:
    """The URL; without one there is nothing to talk to, and a guess could meet the wrong store."""
    if not url:
        raise ConfigError(f"no store is named; pass --url or set TICKOFF_URL{instead}")
    return url
