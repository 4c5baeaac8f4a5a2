"""Tables fit the terminal, whatever is in them."""

from __future__ import annotations

import pytest

from tickoff.cli.paint import WIDTH, columns, details, paint, shortened, table

LONG = "a-name-that-would-fill-the-whole-line-and-more-if-it-were-let-to-do-so-and-it-is-not"


def test_what_fits_is_not_cut() -> None:
    """However wide one of the columns is."""
    head, row = table(("JOB", "NEXT TICK"), [(LONG[:60], "in 3 minutes")])
    assert columns(head) <= columns(row) <= WIDTH
    assert row == f"{LONG[:60]}  in 3 minutes"


def test_the_widest_columns_give_way_to_the_narrow_ones() -> None:
    """A line is as long as the terminal is wide; what is short is whole."""
    _, row = table(("JOB", "SCHEDULE", "NEXT TICK"), [(LONG, LONG, "in 3 minutes"), ("b", "c", "-")])[:2]
    assert columns(row) == WIDTH
    assert row.endswith("…  in 3 minutes")


@pytest.mark.parametrize(
    ("text", "room"), [("", 0), ("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("👍", 2)]
)
def test_a_text_takes_as_much_room_as_a_terminal_gives_it(text: str, room: int) -> None:
    """That of Chinese and Japanese is twice its length; colours take none."""
    assert columns(text) == room
    assert columns(paint(text, "red")) == room


def test_wide_texts_are_cut_where_the_room_ends() -> None:
    """Not in the middle of a sign."""
    assert shortened("日本語", 6) == "日本語"
    assert shortened("日本語", 5) == "日本…"
    assert shortened("日本語", 4) == "日…"
    assert columns(details("日本語" * 40)) <= WIDTH
    narrow, wide = table(("JOB", "RUN"), [("plain", "ok"), ("日本語", "ok")])[1:]
    assert columns(narrow) == columns(wide)
