"""Act 2: the server at work is killed; another one takes its tick over when the lease has run out."""

from __future__ import annotations

import time

from ..fleet import called
from ..show import Show, Tone, at_clock
from ..stage import Stage
from . import imports

_JOB = "import-products"


def killed(stage: Stage, show: Show) -> None:
    """Kill it in the middle of its import."""
    show.act(2, "The server at work is killed")
    first = imports.begin(stage, show, _JOB)
    server = stage.fleet.server(first.server)
    server.kill()
    died = time.monotonic()
    show.say(f"{called(first.server)} imports for the tick of {at_clock(first.tick)}, fence {first.fence}")
    show.say(f"kill -9 {server.pid}: it is gone, and told nobody", Tone.BAD)
    second = imports.taken_over(stage, show, first)
    waited = time.monotonic() - died
    show.say(
        f"{called(second.server)} takes the same tick over after {waited:.1f} s: "
        f"attempt {second.attempt}, fence {second.fence}",
        Tone.GOOD,
    )
    imports.written(stage, show, second)
    stage.fleet.rest()
