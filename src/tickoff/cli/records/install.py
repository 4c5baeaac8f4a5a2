"""`tickoff records install|uninstall NAME`: the tracking columns, added and taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .common import app_option, json_option, name_argument, opened, say

if TYPE_CHECKING:
    from ...records.operator import Records


@click.command(short_help="Add the tracking columns to the table, safe while it is used.")
@name_argument
@click.option("--print", "only_print", is_flag=True, help="Print all statements, connecting to nothing.")
@app_option
@json_option
def install(name: str, app: str | None, *, only_print: bool, as_json: bool) -> None:
    """Add what NAME's table lacks to be worked: the column of states and those beside it."""
    with opened(app, name) as records:
        statements = _printed(records) if only_print else records.table.install()
    _say(statements, "nothing is missing", as_json=as_json)


@click.command(short_help="Take the tracking columns away.")
@name_argument
@click.option("--states", is_flag=True, help="The column of states as well.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@app_option
@json_option
def uninstall(name: str, app: str | None, *, states: bool, yes: bool, as_json: bool) -> None:
    """Take the tracking columns of NAME's table away; results stay, and so do states unless asked for."""
    if not yes:
        click.confirm(f"Forget attempts, errors and claims of {name}?", abort=True, err=True)
    with opened(app, name) as records:
        statements = records.table.uninstall(states=states)
    _say(statements, "nothing was there", as_json=as_json)


def _printed(records: Records) -> list[str]:
    """What a table without any tracking column would need; the address begins with the dialect's name."""
    from ...tables.installing import ddl

    text = ddl(records.job.plan, records.table.address.partition("://")[0])
    return [statement for statement in text.split(";\n\n") if statement]


def _say(statements: list[str], nothing: str, *, as_json: bool) -> None:
    text = "\n".join(f"{statement};" for statement in statements) or f"-- {nothing}"
    say({"statements": statements}, text, as_json=as_json)
