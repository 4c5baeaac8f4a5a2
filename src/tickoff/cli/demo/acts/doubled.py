"""Act 1: ten servers send a newsletter, asking nobody; beside it the same ten servers with Tickoff."""

from __future__ import annotations

from ..application import EVERY
from ..fleet import SIZE, called
from ..journal import Seen
from ..show import Show, Tone, at_clock
from ..stage import Stage

_TICKS = 3
_PERIOD = round(EVERY * 1000)
_SETTLED = 300
"""A moment (ms) after a tick's time is over, when all that was sent in it has arrived."""


def doubled(stage: Stage, show: Show) -> None:
    """Three ticks, a line for each."""
    show.act(1, f"Ten servers, one newsletter every {EVERY:g} s; their clocks are wrong by minutes")
    stage.fleet.serve("newsletter")
    show.say(f"{'tick':10} {'each by its own clock':22}  with Tickoff", Tone.DIM)
    first = (stage.now() // _PERIOD + 1) * _PERIOD
    for tick in range(first, first + _TICKS * _PERIOD, _PERIOD):
        _tick(stage, show, tick)
    stage.fleet.rest()


def _tick(stage: Stage, show: Show, tick: int) -> None:
    """What arrives until the next tick; the naive ones are counted by when they arrived."""

    def over() -> bool | None:
        past = stage.now() >= tick + _PERIOD + _SETTLED
        return (past and any(stage.journal.of("email", tick=tick))) or None

    stage.until(
        over,
        f"no email was sent for the tick of {at_clock(tick)}",
        lambda: show.now(_line(tick, *_sent(stage, tick))),
    )
    naive, ours = _sent(stage, tick)
    show.say(_line(tick, naive, ours), Tone.PLAIN if len(ours) == 1 else Tone.BAD)


def _sent(stage: Stage, tick: int) -> tuple[list[Seen], list[Seen]]:
    naive = [seen for seen in stage.journal.of("naive") if tick <= seen.at + stage.ahead < tick + _PERIOD]
    return naive, list(stage.journal.of("email", tick=tick))


def _line(tick: int, naive: list[Seen], ours: list[Seen]) -> str:
    who = ", ".join(called(seen.server) for seen in ours[:1])
    aside = f": {who}, {SIZE - 1} step aside" if len(ours) == 1 else ""
    return (
        f"{at_clock(tick):10} {_strip(naive)} {_emails(len(naive)):11}  "
        f"{_strip(ours)} {_emails(len(ours))}{aside}"
    )


def _strip(seen: list[Seen]) -> str:
    """A place for each server: what it sent."""
    sent = [sum(one.server == number for one in seen) for number in range(1, SIZE + 1)]
    return "".join("." if count == 0 else "#" if count == 1 else str(min(count, 9)) for count in sent)


def _emails(count: int) -> str:
    return f"{count} email{'' if count == 1 else 's'}"
