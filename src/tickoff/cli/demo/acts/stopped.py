"""Act 3: the server at work is stopped past its lease and goes on as if nothing had happened: a zombie."""

from __future__ import annotations

from ..fleet import called
from ..journal import Seen
from ..show import Show, Tone, at_clock
from ..stage import Stage
from . import imports

_JOB = "import-prices"


def stopped(stage: Stage, show: Show) -> None:
    """Stop it in the middle of its import, and wake it when another one has done it."""
    show.act(3, "The server at work is stopped, and comes back too late")
    zombie = imports.begin(stage, show, _JOB)
    server = stage.fleet.server(zombie.server)
    server.stop()
    show.say(f"{called(zombie.server)} imports for the tick of {at_clock(zombie.tick)}, fence {zombie.fence}")
    show.say(f"kill -STOP {server.pid}: it sleeps, and renews no lease", Tone.BAD)
    taker = imports.taken_over(stage, show, zombie)
    show.say(f"{called(taker.server)} takes the same tick over: fence {taker.fence}", Tone.GOOD)
    imports.written(stage, show, taker)
    server.resume()
    show.say(
        f"kill -CONT {server.pid}: {called(zombie.server)} knows nothing of it, and writes, too", Tone.BAD
    )
    _refused(stage, show, zombie)
    stage.fleet.rest()


def _refused(stage: Stage, show: Show, zombie: Seen) -> None:
    """Its transaction must not be committed."""
    refusal = stage.until(
        lambda: next(stage.journal.of("refused", job=zombie.job, fence=zombie.fence), None),
        "the late write was not refused",
        lambda: show.now(f"{called(zombie.server)} writes"),
    )
    newer = f"{refusal.fence} < {refusal.high}" if refusal.high else "its lease is over"
    show.say(f"refused: {newer}; its transaction is rolled back", Tone.GOOD)
