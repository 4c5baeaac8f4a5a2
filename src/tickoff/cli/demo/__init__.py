"""`tickoff demo`: ten real processes with wrong clocks, a crash, a zombie, 2,000 rows, and a verdict.

`stage` starts and ends everything: the world outside (`api`, which keeps a log), the `fleet` of ten
`processes` (each a `server` of the `application`), the tables. `play` goes through the `acts`; `show` and
`terminal` tell them; `verdict` counts what the log and the database have.
"""

from __future__ import annotations

import click

from ..exits import FAILED
from ..options import namespace_option, url_option


@click.command(short_help="Ten real processes, a crash, a zombie, 2,000 rows: see for yourself.")
@url_option
@namespace_option
@click.option("--plain", is_flag=True, help="Plain lines, for pipes and CI; the default off a terminal.")
@click.pass_context
def demo(context: click.Context, url: str | None, namespace: str | None, plain: bool) -> None:
    """Show in a minute what Tickoff does: every tick once, every row once, whatever happens to the servers.

    Ten processes with wrong clocks work on a temporary SQLite file, or on the store that is named. One is
    killed, one is stopped and comes back too late, one dies with rows in its hands. The verdict is read from
    a log that no server can touch and from the database; the exit status says if it held.
    """
    from .play import play
    from .show import show_for

    if not play(url, namespace, show_for(plain)).held:
        context.exit(FAILED)
