"""`tickoff schema` prints what `tickoff migrate` does."""

from __future__ import annotations

import click
from click.core import ParameterSource

from ..errors import ConfigError
from .options import required_url, url_option

_SCHEMALESS = {
    "redis": "Redis needs no schema",
    "rediss": "Redis needs no schema",
    "memory": "memory:// needs no schema",
}
_ALIASES = {"postgres": "postgresql"}


@click.command(short_help="Print the tables' DDL, connecting to nothing.")
@click.argument("dialect", required=False)
@url_option
@click.pass_context
def schema(context: click.Context, dialect: str | None, url: str | None) -> None:
    """Print the statements that make Tickoff's tables, connecting to nothing.

    DIALECT is sqlite, postgresql, mysql or mariadb; without it, the URL's scheme tells.
    """
    if dialect is not None and context.get_parameter_source("url") is ParameterSource.COMMANDLINE:
        raise click.UsageError("DIALECT and --url both name a dialect; give one of them", context)
    wanted = dialect or _dialect_of(required_url(url, ", or name a dialect: tickoff schema postgresql"))
    if wanted in _SCHEMALESS:
        click.echo(f"tickoff: {_SCHEMALESS[wanted]}", err=True)
        return
    from .. import writes
    from ..stores.sql.schema import ddl

    click.echo(f"-- leases, in the database that is the store\n\n{ddl(wanted)}", nl=False)
    click.echo(f"-- fences, in the database that jobs write to\n\n{writes.ddl(wanted)}", nl=False)


@click.command(short_help="Make the store's tables or bring them up to date.")
@url_option
def migrate(url: str | None) -> None:
    """Make the store's tables, or bring them up to date; safe to repeat and while servers run."""
    from ..stores import open_store

    store = open_store(required_url(url))
    try:
        click.echo(store.migrate())
    finally:
        store.close()


def _dialect_of(url: str) -> str:
    """The dialect an URL names by its scheme: read here, because opening the store needs its driver."""
    scheme, separator, _ = url.partition("://")
    if not separator:  # not repeated here: it may be a password
        raise ConfigError("the URL has no scheme; write it as postgresql://user:password@host:port/name")
    name = scheme.partition("+")[0]
    return _ALIASES.get(name, name)
