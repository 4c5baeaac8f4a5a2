"""`tickoff records install|uninstall NAME`: the tracking columns, added and taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .common import app_option, json_option, name_argument, opened, say

if TYPE_CHECKING:
    from ...records.job import RecordJob


@click.command(short_help="Add what tracks the rows: columns, or a companion.")
@name_argument
@click.option("--print", "only_print", is_flag=True, help="Print all statements, and run none.")
@app_option
@json_option
def install(name: str, app: str | None, *, only_print: bool, as_json: bool) -> None:
    """Add what NAME's table lacks to be worked: the column of states and those beside it, or a companion.

    It is safe while the table is used. --print connects to nothing, but to read a companion's key.
    """
    with opened(app, name) as records:
        statements = records.table.ddl() if only_print else records.table.install()
    _say(statements, "nothing is missing", as_json=as_json)


@click.command(short_help="Take the tracking columns away.")
@name_argument
@click.option("--states", is_flag=True, help="The column of states as well; a companion with its answers.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@app_option
@json_option
def uninstall(name: str, app: str | None, *, states: bool, yes: bool, as_json: bool) -> None:
    """Take the tracking columns of NAME's table away; results stay, and so do states unless asked for."""
    with opened(app, name) as records:
        if not yes:
            click.confirm(f"Forget {_forgotten(records.job, states=states)} of {name}?", abort=True, err=True)
        statements = records.table.uninstall(states=states)
    _say(statements, "nothing was there", as_json=as_json)


def _forgotten(job: RecordJob, *, states: bool) -> str:
    if states and job.plan.companion:
        return "attempts, errors, claims, states and all answers"
    return "attempts, errors, claims and states" if states else "attempts, errors and claims"


def _say(statements: list[str], nothing: str, *, as_json: bool) -> None:
    text = "\n".join(f"{statement};" for statement in statements) or f"-- {nothing}"
    say({"statements": statements}, text, as_json=as_json)
