"""What happens to ticks, told once to everybody who listens; the log is the first of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ..model import Outcome, moment

_log = logging.getLogger("tickoff")


class Kind(StrEnum):
    """What happened."""

    STARTED = "started"
    ENDED = "ended"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a tick of a job, on this server.

    A missed one may stand for many, after an outage: `count` of them, of which `tick` is the last.
    """

    kind: Kind
    job: str
    tick: int
    fence: int = 0
    attempt: int = 0
    manual: bool = False
    outcome: Outcome | None = None
    seconds: float = 0.0
    error: str = ""
    cause: BaseException | None = None
    count: int = 1


Listener = Callable[[Event], None]


class Events:
    """Tells every event to all listeners; one that raises is logged, and harms nobody."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Kind | None, Listener]] = [(None, log)]

    def on(self, kind: Kind | None, listener: Listener) -> None:
        """Call the listener for events of this kind, or for all, in the thread where they happen."""
        self._listeners.append((kind, listener))

    def heard(self, kind: Kind, outcome: Outcome | None = None) -> bool:
        """Whether somebody listens to events of a kind: else they need not be made."""
        if any(wanted in (None, kind) for wanted, _ in self._listeners[1:]):
            return True
        return _log.isEnabledFor(_level(kind, outcome))

    def tell(self, event: Event) -> None:
        """Tell an event."""
        for kind, listener in self._listeners:
            if kind is None or kind is event.kind:
                self._tell_one(listener, event)

    @staticmethod
    def _tell_one(listener: Listener, event: Event) -> None:
        try:
            listener(event)
        except Exception:  # noqa: BLE001 - somebody else's code must not stop the work, and is reported
            _log.exception("a listener for %r failed", event.kind)


def log(event: Event) -> None:
    """One line per outcome: a failure at ERROR, with its traceback; all else at INFO."""
    if not _log.isEnabledFor(_level(event.kind, event.outcome)):
        return
    about = {
        "job": event.job,
        "tick": event.tick,
        "fence": event.fence,
        "outcome": str(event.outcome or event.kind),
    }
    run = "manual run" if event.manual else "tick"
    what = f"{event.job}: {run} of {moment(event.tick):%Y-%m-%d %H:%M:%S} UTC"
    if event.kind is Kind.STARTED:
        _log.debug("%s started", what, extra=about)
    elif event.kind is Kind.SKIPPED:
        _log.info("%s skipped: %s", what, event.error, extra=about)
    elif event.kind is Kind.MISSED:
        others = f", as {event.count - 1} before it," if event.count > 1 else ""
        _log.error("%s%s was due, and nobody finished it: %s", what, others, event.error, extra=about)
    elif event.outcome is Outcome.OK:
        _log.info("%s ok after %.3f s", what, event.seconds, extra=about)
    else:
        words = f"{event.outcome} after {event.seconds:.3f} s: {event.error}"
        _log.error("%s %s", what, words, extra=about, exc_info=event.cause)


def _level(kind: Kind, outcome: Outcome | None) -> int:
    if kind is Kind.STARTED:
        return logging.DEBUG
    failed = kind is Kind.ENDED and outcome is not Outcome.OK
    return logging.ERROR if failed or kind is Kind.MISSED else logging.INFO
