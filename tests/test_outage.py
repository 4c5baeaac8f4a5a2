"""An outage is told once, and its end once."""

from __future__ import annotations

import pytest

from tickoff.outage import Outage


def test_each_outage_is_told_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """However often it is met; and an end where none was is nothing to tell."""
    outage = Outage()
    for _ in range(2):
        outage.over("%s answers again", "redis")
        outage.met("cannot race: %s", "time-out")
        outage.met("cannot race: %s", "time-out")
    outage.over()
    outage.over("%s answers again", "redis")
    told = ["cannot race: time-out", "redis answers again", "cannot race: time-out"]
    assert [line.getMessage() for line in caplog.records] == told
