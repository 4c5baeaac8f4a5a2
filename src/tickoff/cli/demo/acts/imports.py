"""What acts 2 and 3 share: a slow import begins, its server drops out, and the lease has to end."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

from .. import application
from ..fleet import called
from ..journal import Seen
from ..show import Show, at_clock
from ..stage import Missed, Stage

_LEAD = 1_000
"""So soon (ms) a tick is due once all servers serve the job."""

_WIDE = 300
_LATE = 3_000
_TRIES = 3
_SHORTEST, _LONGEST = 40_000, 60_000


def begin(stage: Stage, show: Show, job: str) -> Seen:
    """Let the servers serve the job; the server that begins with it at the next tick."""
    for _ in range(_TRIES):
        begun = _begun(stage, show, job, _serve(stage, job))
        if begun:
            return begun
        stage.fleet.rest()  # the tick was over before they served it; they are faster once they are warm
    raise Missed(f"the servers take more than {stage.fleet.took:.0f} s to begin")


def _serve(stage: Stage, job: str) -> int:
    """Let the servers serve the job, with a tick that is due as soon as all of them do; the tick."""
    period = _soon_due(stage.now() + _LEAD + round(stage.fleet.took * 1000))
    tick = (stage.now() // period + 1) * period
    stage.fleet.serve(f"import {job} {period}ms")
    return tick


def _begun(stage: Stage, show: Show, job: str, tick: int) -> Seen | None:
    """Who begins; None when nobody does."""
    late = max(tick, stage.now()) + _LATE

    def look() -> Seen | Literal[False] | None:
        begun = next(stage.journal.of("begun", job=job), None)
        return begun or (False if stage.now() > late else None)

    waiting = f"the next tick is due at {at_clock(tick)}"
    found: Seen | Literal[False] = stage.until(look, f"nobody began with {job}", lambda: show.now(waiting))
    return found or None


def taken_over(stage: Stage, show: Show, lost: Seen) -> Seen:
    """The server that begins with the same tick, once the lease has run out."""
    return stage.until(
        lambda: next(stage.journal.of("begun", job=lost.job, tick=lost.tick, attempt=lost.attempt + 1), None),
        f"nobody took over the tick of {lost.job}",
        lambda: show.count(f"the lease runs out in {stage.lease_left(lost.job, lost.fence):.1f} s"),
    )


def written(stage: Stage, show: Show, by: Seen) -> None:
    """Wait until the import is in the database."""
    lines = application.imported()
    query = sa.select(lines.c.id).where(lines.c.job == by.job, lines.c.tick == by.tick)
    stage.until(
        lambda: stage.select(query) or None,
        f"{called(by.server)} did not write its import",
        lambda: show.now(f"{called(by.server)} imports"),
    )
    show.say(f"{called(by.server)} has written the import of {at_clock(by.tick)}")


def _soon_due(instant: int) -> int:
    """A period of about a minute, in ms, with a tick at this instant or just after: nobody waits a minute."""
    for period in range(_LONGEST, _SHORTEST, -1):
        if -instant % period <= _WIDE:
            return period
    raise Missed("no period of about a minute has a tick soon")  # a hundred or so have one
