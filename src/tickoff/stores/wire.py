"""Requests as plain dicts, for stores that hand them to a script or a statement."""

from __future__ import annotations

from typing import Any

from ..model import Bid, Ending, Hold, Known


def bid_values(bid: Bid) -> dict[str, Any]:
    """A bid and what its server remembers; `blank` says that it remembers nothing."""
    return {
        "name": bid.name,
        "token": bid.token,
        "owner": bid.owner,
        "ttl": bid.ttl,
        "tick": bid.tick,
        "attempts": bid.attempts,
        "takeover": int(bid.takeover),
        "scheduled": int(bid.scheduled),
        "manual": int(bid.manual),
        "blank": bid.known == _NOTHING,
        **known_values(bid.known),
    }


def hold_values(hold: Hold) -> dict[str, Any]:
    """A hold; what its server remembers stands apart, since both have a fence and a TTL."""
    return {
        "name": hold.name,
        "token": hold.token,
        "owner": hold.owner,
        "ttl": hold.ttl,
        "held_fence": hold.fence,
        "taken": hold.taken,
        "held_until": hold.until,
        "tick": hold.tick,
        "attempt": hold.attempt,
        "scheduled": int(hold.scheduled),
        "manual": int(hold.manual),
        **known_values(hold.known),
    }


def ending_values(ending: Ending) -> dict[str, Any]:
    """An ending with its hold."""
    return hold_values(ending.hold) | {
        "outcome": ending.outcome,
        "error": ending.error,
        "attempts": ending.attempts,
    }


def known_values(known: Known) -> dict[str, Any]:
    """What a server remembers."""
    return {
        "fence": known.fence,
        "decided": known.decided,
        "finished": known.finished,
        "since": known.since,
        "known_ttl": known.ttl,
        "steered": known.steered,
        "paused": int(known.paused),
        "paused_by": known.paused_by,
        "paused_why": known.paused_why,
    }


_NOTHING = Known()
