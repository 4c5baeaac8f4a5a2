"""The store's time, estimated from answers that took a while to come."""

from __future__ import annotations

import math

import pytest

from tickoff.leases import storetime
from tickoff.leases.storetime import StoreTime

NOW = 1000.0


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Both clocks of this machine, as they are set here."""
    shown = {"elapsed": NOW, "wall": 5_000_000}
    monkeypatch.setattr(storetime, "elapsed", lambda: shown["elapsed"])
    monkeypatch.setattr(storetime, "wall", lambda: int(shown["wall"]))
    return shown


def test_before_the_first_answer_it_is_our_own_clocks() -> None:
    """Which may be wrong, and says so."""
    time = StoreTime()
    assert time.now() == 5_000_000
    assert not time.known
    assert math.isnan(time.skew)


def test_an_answer_is_dated_at_the_middle_of_its_trip(clocks: dict[str, float]) -> None:
    """And time goes on from there by the clock that never steps."""
    time = StoreTime()
    time.learn(7_000_000, NOW - 0.2, NOW)
    assert time.now() == pytest.approx(7_000_100)
    clocks["elapsed"] += 3
    clocks["wall"] -= 900_000
    assert time.now() == pytest.approx(7_003_100)
    assert time.local(7_004_100) == pytest.approx(NOW + 4)


def test_the_skew_is_what_this_machine_is_ahead(clocks: dict[str, float]) -> None:
    """In seconds; negative when it is behind."""
    time = StoreTime()
    time.learn(4_990_000, NOW, NOW)
    assert time.skew == pytest.approx(10)


def test_a_quick_answer_is_believed_before_a_slow_one(clocks: dict[str, float]) -> None:
    """The slow one does not contradict it: it may be off by half its trip."""
    time = StoreTime()
    time.learn(7_000_000, NOW - 0.002, NOW)
    exact = time.now()
    clocks["elapsed"] += 1
    time.learn(7_000_900, NOW, NOW + 1)
    assert time.now() == pytest.approx(exact + 1000)
    clocks["elapsed"] += 1
    time.learn(7_002_010, NOW + 2, NOW + 2)
    assert time.now() == pytest.approx(7_002_010)


def test_an_old_answer_gives_way_to_a_somewhat_slower_one_but_not_to_any(clocks: dict[str, float]) -> None:
    """Clocks drift: 0.2 ms a second are allowed for."""
    time = StoreTime()
    time.learn(7_000_000, NOW, NOW)
    clocks["elapsed"] += 100
    time.learn(7_100_040, NOW + 99.9, NOW + 100)
    assert time.now() == pytest.approx(7_100_000)
    time.learn(7_100_010, NOW + 99.98, NOW + 100)
    assert time.now() == pytest.approx(7_100_020)


def test_a_store_whose_clock_was_set_is_believed_at_once(clocks: dict[str, float]) -> None:
    """Forward or back, by more than an answer can be off."""
    time = StoreTime()
    time.learn(7_000_000, NOW, NOW)
    for told in (9_000_000, 6_000_000):
        time.learn(told, NOW - 0.1, NOW)
        assert time.now() == pytest.approx(told + 50)
