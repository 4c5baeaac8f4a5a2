"""Cron lines as people write them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tickoff.errors import ConfigError
from tickoff.schedules.schedule import cron


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("0 * * * *", "0 * * * * UTC"),
        ("  0\t*  * * *  ", "0 * * * * UTC"),
        ("0 9 * jan mon-fri", "0 9 * JAN MON-FRI UTC"),
        ("0 0 l * *", "0 0 L * * UTC"),
        ("@hourly", "0 * * * * UTC"),
        ("@daily", "0 0 * * * UTC"),
        ("@midnight", "0 0 * * * UTC"),
        ("@weekly", "0 0 * * 0 UTC"),
        ("@monthly", "0 0 1 * * UTC"),
        ("@yearly", "0 0 1 1 * UTC"),
        (" @Annually ", "0 0 1 1 * UTC"),
    ],
)
def test_a_line_has_one_spelling(written: str, text: str) -> None:
    """Servers compare texts: what means the same should read the same."""
    assert cron(written).text == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("61 * * * *", "the minute '61' is not understood; write 0-59"),
        ("* 24 * * *", "the hour '24' is not understood; write 0-23"),
        ("* * 0 * *", "the day-of-month '0' is not understood; write 1-31"),
        ("* * * 13 *", "the month '13' is not understood; write 1-12 or JAN-DEC"),
        ("* * * * 8", "the day-of-week '8' is not understood; write 0-7 or SUN-SAT"),
        ("*/0 * * * *", "the minute '*/0' is not understood"),
        ("5-1 * * * *", "the minute '5-1' is not understood"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("* * */20 * 1L", "never fires"),
        ("* * * * * *", "has 6 fields; programs disagree whether seconds come first or last"),
        ("0 * * *", "has 4 fields instead of 5"),
        ("0 * * * * /bin/true -x", "has 7 fields instead of 5"),
        ("", "has 0 fields"),
        ("@reboot", "no instant that servers could agree on"),
        ("@dayly", 'did you mean "@daily"'),
        ("@", "is unknown"),
    ],
)
def test_a_wrong_line_is_refused_naming_the_field_and_the_remedy(line: str, said: str) -> None:
    """Early, and in words that help."""
    with pytest.raises(ConfigError, match="cron=") as refused:
        cron(line)
    assert said in str(refused.value)


HOSTILE: list[Any] = [
    None,
    b"0 * * * *",
    1.5,
    True,
    ["0", "*", "*", "*", "*"],
    object(),
    "\x00 * * * *",
    "0 * * * *\x00",
    "0\n* * * *",
    "* " * 5_000,
    "9" * 10_000,
    "9" * 150 + " * * * *",
    "1," * 90 + "1 * * * *",
    "\u202e* * * * 0",
    "٣ * * * *",
    "0 0 * * \u017fun",
    "{0} {1} * * *",
    "%s %n * * *",
    "0.5 * * * *",
    "-1 * * * *",
    "1e1 * * * *",
    "\ud800 * * * *",
    "0 0 * * L",
    "0 0 * * #",
    "0 0 * * 1#6",
    "0 0 L-3 * *",
    "0 0 15W * *",
    "H * * * *",
    "? * * * *",
    ", * * * *",
    "/ * * * *",
    "1/2/3 * * * *",
    "1-2-3 * * * *",
    "*-5 * * * *",
    "~ * * * *",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_input_is_a_configuration_error_and_nothing_else(hostile: Any) -> None:
    """No traceback of another type, no wall of text in the message."""
    if hostile == "1," * 90 + "1 * * * *":  # long, and valid
        assert cron(hostile).after(0) == 60_000
        return
    with pytest.raises(ConfigError, match="cron=") as refused:
        cron(hostile)
    assert len(str(refused.value)) < 600


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.text("0123456789*/,-#LW SUNMOJA@", max_size=30))
@example("0 0 5L/2 * *")
@example("* * L/2 * MON#1,5L")
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text ends in another error."""
    with contextlib.suppress(ConfigError):
        assert cron(text).after(0)


part = st.sampled_from(
    ["*", "*/7", "0", "5", "1-3", "2,4", "1-6/2", "7", "3/2", "L", "LW", "MON#5", "5L", "99", "x"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(part, min_size=5, max_size=5))
def test_any_five_fields_are_read_or_refused(parts: list[str]) -> None:
    """Fields that are right by themselves may still be wrong where they stand."""
    with contextlib.suppress(ConfigError):
        assert cron(" ".join(parts)).after(0)
