"""Durations as people write them."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickoff import Tickoff
from tickoff.durations import seconds, ttl_ms, wait_seconds
from tickoff.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172800),
        ("30", 30),
        (" 30 ", 30),
        (30, 30),
        (0.5, 0.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_durations_are_read(text: Any, length: float) -> None:
    """Numbers are seconds; texts have units, which may be combined."""
    assert seconds(text, "ttl") == length


@pytest.mark.parametrize(
    "bad", ["", "s", "5 m", "-5s", "5x", "1e3", "nan", "inf", "٣s", "5m garbage", True, None, [], b"5s"]
)
def test_what_is_no_duration_is_refused_naming_the_field(bad: Any) -> None:
    """The message says which argument is wrong and how to write it."""
    with pytest.raises(ConfigError, match="ttl"):
        ttl_ms(bad)


@pytest.mark.parametrize("bad", [0, -1, "0s", float("nan"), float("inf"), 0.01, "8d", timedelta(-1)])
def test_a_ttl_that_cannot_work_is_refused_early(bad: Any) -> None:
    """Before anything is connected, when the lock is asked for."""
    with pytest.raises(ConfigError, match="ttl"):
        Tickoff("redis://127.0.0.1:1").lock("name", ttl=bad)


def test_a_negative_wait_is_refused() -> None:
    """None and zero mean: give up at once."""
    assert wait_seconds(None) == wait_seconds(0) == 0
    with pytest.raises(ConfigError, match="wait"):
        wait_seconds(-1)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text ends in another error."""
    with contextlib.suppress(ConfigError):
        assert seconds(text, "ttl") >= 0
