"""`tickoff demo`: ten real processes race for one name; what each of them did is counted afterwards.

`fleet` starts and ends the processes, each of which is a `racer`; `show` draws the rounds while they run;
`verdict` counts the logs the racers kept for themselves, outside the store.
"""

from __future__ import annotations

import click

from ..exits import FAILED
from ..options import namespace_option, url_option


@click.command(short_help="Ten real processes race for one name.")
@url_option
@namespace_option
@click.option("--plain", is_flag=True, help="Plain lines, for pipes and CI; the default off a terminal.")
@click.pass_context
def demo(context: click.Context, url: str | None, namespace: str | None, plain: bool) -> None:
    """Let ten real processes race for one name: each round one wins, nine step aside.

    They race on a temporary SQLite file unless a store is named.
    """
    from .race import race_of_ten
    from .show import show_for

    if not race_of_ten(url, namespace, show_for(plain)).held:
        context.exit(FAILED)
