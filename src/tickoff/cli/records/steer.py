"""`tickoff records pause|resume|retry|reopen|sweep NAME`."""

from __future__ import annotations

from dataclasses import asdict

import click

from .common import app_option, json_option, name_argument, opened, say


@click.command(short_help="Stop the work on all servers within a second.")
@name_argument
@click.option("--why", default="paused by an operator", show_default=True, help="What others shall read.")
@app_option
@json_option
def pause(name: str, why: str, app: str | None, *, as_json: bool) -> None:
    """Stop the work on NAME's records on all servers: claims are given back, running calls may end."""
    with opened(app, name) as records:
        steered = records.pause(why)
    say(asdict(steered), f"{name} is paused: {why}", as_json=as_json)


@click.command(short_help="Go on after a pause.")
@name_argument
@app_option
@json_option
def resume(name: str, app: str | None, *, as_json: bool) -> None:
    """Go on with NAME's records on all servers."""
    with opened(app, name) as records:
        steered = records.resume()
    say(asdict(steered), f"{name} goes on", as_json=as_json)


@click.command(short_help="Make FAILED rows PENDING again.")
@name_argument
@click.option("--error", metavar="LIKE", help="Only rows whose error is LIKE this, such as '%timed out%'.")
@app_option
@json_option
def retry(name: str, error: str | None, app: str | None, *, as_json: bool) -> None:
    """Make NAME's FAILED rows PENDING again, with all their attempts."""
    with opened(app, name) as records:
        count = records.retry(error)
    say({"retried": count}, f"{count} rows are PENDING again", as_json=as_json)


@click.command(short_help="Make DONE rows PENDING again: they are worked and paid anew.")
@name_argument
@click.option("--where", metavar="SQL", help="Only rows that meet this condition.")
@click.option("--changed", is_flag=True, help="Only rows that were changed since; needs a companion.")
@click.option("--all", "everything", is_flag=True, help="All rows; needed where no condition is given.")
@app_option
@json_option
def reopen(
    name: str, where: str | None, app: str | None, *, changed: bool, everything: bool, as_json: bool
) -> None:
    """Make NAME's DONE rows PENDING again; their results stay until they are overwritten."""
    if (where is not None or changed) is everything:
        raise click.UsageError("every row is worked and paid again: give --where SQL, --changed, or --all")
    with opened(app, name) as records:
        count = records.reopen(where, changed=changed)
    say({"reopened": count}, f"{count} rows are PENDING again", as_json=as_json)


@click.command(short_help="Put back what dead workers left in flight.")
@name_argument
@app_option
@json_option
def sweep(name: str, app: str | None, *, as_json: bool) -> None:
    """Put back now what claims that ran out have left in flight; the servers do so by themselves, too."""
    with opened(app, name) as records:
        swept = records.sweep()
    text = f"{swept.suspected} put back, {swept.charged} charged, {swept.failed} FAILED, {swept.busy} locked"
    say(asdict(swept), text, as_json=as_json)
