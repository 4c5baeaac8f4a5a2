"""Events reach everybody who listens, whatever the others do; the log has one line per outcome."""

from __future__ import annotations

import logging

import pytest

from tickoff.model import Outcome
from tickoff.ticks.events import Event, Events, Kind

TICK = 1_750_000_000_000


def event(kind: Kind = Kind.ENDED, outcome: Outcome | None = Outcome.OK, **more: object) -> Event:
    """Something that happened to a tick."""
    return Event(kind=kind, job="tidy", tick=TICK, fence=7, outcome=outcome, **more)  # type: ignore[arg-type]


def test_listeners_hear_what_they_asked_for() -> None:
    """All events, or those of one kind."""
    events, heard, ended = Events(), list[Kind](), list[Kind]()
    events.on(None, lambda one: heard.append(one.kind))
    events.on(Kind.ENDED, lambda one: ended.append(one.kind))
    for kind in Kind:
        events.tell(event(kind, None))
    assert heard == list(Kind)
    assert ended == [Kind.ENDED]


def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is reported with its traceback."""
    events, heard = Events(), list[Event]()
    events.on(None, lambda _: 1 / 0)
    events.on(None, heard.append)
    events.tell(event())
    assert len(heard) == 1
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("told", "level", "words"),
    [
        (event(Kind.STARTED, None), logging.DEBUG, "tick of 2025-06-15 15:06:40 UTC started"),
        (event(seconds=1.5), logging.INFO, "tidy: tick of 2025-06-15 15:06:40 UTC ok after 1.500 s"),
        (event(manual=True), logging.INFO, "tidy: manual run of"),
        (event(Kind.SKIPPED, None, error="paused by ann"), logging.INFO, "skipped: paused by ann"),
        (event(outcome=Outcome.FAILED, error="ValueError: no"), logging.ERROR, "failed after 0.000 s: Value"),
        (event(outcome=Outcome.TIMED_OUT), logging.ERROR, "timed out after"),
        (event(Kind.MISSED, None, count=3), logging.ERROR, "as 2 before it, was due, and nobody finished it"),
    ],
)
def test_each_event_is_one_line(
    caplog: pytest.LogCaptureFixture, told: Event, level: int, words: str
) -> None:
    """With job, tick and fence beside the words."""
    caplog.set_level(logging.DEBUG, "tickoff")
    Events().tell(told)
    (line,) = caplog.records
    assert line.levelno == level
    assert words in line.getMessage()
    assert (line.job, line.tick, line.fence) == ("tidy", TICK, 7)  # type: ignore[attr-defined]


def test_what_somebody_must_see_is_logged_where_nothing_was_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Python logs from WARNING on until told otherwise: a failed tick and a missed one are above that."""
    caplog.set_level(logging.WARNING, "tickoff")
    for one in (event(), event(outcome=Outcome.FAILED), event(Kind.MISSED, None)):
        Events().tell(one)
    assert [line.outcome for line in caplog.records] == ["failed", "missed"]  # type: ignore[attr-defined]


def test_a_failure_brings_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Once."""
    try:
        int("no number")
    except ValueError as error:
        Events().tell(event(outcome=Outcome.FAILED, error="no number", cause=error))
    assert caplog.text.count("Traceback") == 1
