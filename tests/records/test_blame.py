"""Whose fault it was: how the end of a call becomes a verdict."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.records.scripted import job, record
from tickoff import Defer, Pause, Reject
from tickoff.errors import ConfigError
from tickoff.records import blame
from tickoff.records.backoff import Backoff, backoff_of
from tickoff.records.retryafter import from_now
from tickoff.tables.base import Charged, Deferred, Done, Failed


def test_none_is_an_answer() -> None:
    """Of one column and of several."""
    assert blame.answered(job(), record(1), None) == Done((1,), {"answer": None})


def test_an_exception_waits_longer_with_each_attempt_and_then_fails() -> None:
    """By half to all of 1, 2, 4 … seconds."""
    verdicts = [blame.raised(job(attempts=4), record(1, used), ValueError("x")) for used in range(4)]
    waits = [verdict.wait for verdict in verdicts if isinstance(verdict, Charged)]
    assert len(waits) == 3
    assert all(2**i / 2 <= wait <= 2**i for i, wait in enumerate(waits))
    assert verdicts[3] == Failed((1,), "ValueError: x")


def test_the_three_words_of_the_work() -> None:
    """None of them is charged as an attempt that is tried again."""
    assert blame.raised(job(), record(1), Defer("2m", "429")) == Deferred((1,), "429", 120.0)
    assert blame.raised(job(), record(1), Reject("never")) == Failed((1,), "never")
    assert blame.raised(job(), record(1), Pause("spent")) == Deferred((1,), "spent", 0.0)


def test_errors_are_short_and_in_one_line() -> None:
    """Whatever the exception says."""
    verdict = blame.raised(job(attempts=1), record(1), ValueError("a\n b\0" + "x" * 9999))
    assert isinstance(verdict, Failed)
    assert len(verdict.error) <= blame.LONGEST_ERROR
    assert "\n" not in verdict.error
    assert "\0" not in verdict.error


def test_a_call_of_several_is_undecided_when_one_of_them_may_be_to_blame() -> None:
    """Not so when the provider is."""
    records = [record(1), record(2)]
    assert blame.raised_for_all(job(), records, ValueError()) == ()
    assert blame.overdue(job(), records) == ()
    assert len(blame.raised_for_all(job(), records, Defer(1))) == 2


def test_waits_are_spread_and_capped() -> None:
    """Between half and all of the length; never above the longest."""
    backoff = Backoff(1.0, 10.0)
    assert [backoff.after(n, 1.0) for n in (1, 2, 3, 4, 5, 999)] == [1, 2, 4, 8, 10, 10]
    assert backoff.after(3, 0.0) == 2
    assert len({backoff.after(3) for _ in range(10)}) > 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2s", Backoff(2, 600)),
        (("1s", "1m"), Backoff(1, 60)),
        ("1h", Backoff(3600, 3600)),
        (0, Backoff(0, 600)),
    ],
)
def test_backoff_is_the_first_wait_or_first_and_longest(value: Any, expected: Backoff) -> None:
    """A first wait above the usual longest is the longest, too."""
    assert backoff_of(value) == expected


@pytest.mark.parametrize("value", [("2s", "1s"), ("1s",) * 3, "-1", "soon"])
def test_a_backoff_that_makes_no_sense_is_refused(value: Any) -> None:
    """By its name."""
    with pytest.raises(ConfigError, match="backoff"):
        backoff_of(value)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        (None, 30.0),
        ("Thu, 01 Jan 2026 12:01:30 GMT", 90.0),
        ("Thursday, 01-Jan-26 12:01:30 GMT", 90.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
    ],
)
def test_what_http_says_as_retry_after_is_a_wait(after: str | None, wait: float) -> None:
    """Seconds, a date by the clock that all share, one that is over already, or nothing at all."""
    said = from_now(Defer(after, "429"), NOON.timestamp() * 1000)
    assert blame.raised(job(), record(1), said) == Deferred((1,), "429", wait)


@pytest.mark.parametrize("after", ["soon, please", "Thu, 99 Jan 2026 12:00:00 GMT", "-5"])
def test_a_retry_after_that_says_nothing_is_charged_with_what_is_wrong(after: str) -> None:
    """It would wait for nobody knows how long."""
    verdict = blame.raised(job(), record(1), from_now(Defer(after), NOON.timestamp() * 1000))
    assert isinstance(verdict, Charged)
    assert after in verdict.error
