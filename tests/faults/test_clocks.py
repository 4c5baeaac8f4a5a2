"""Servers whose clocks are wrong by an hour: the store's clock decides."""

from __future__ import annotations

import time

import pytest

from tests.processes import actors

HOUR = 3600.0


@pytest.mark.parametrize("skew", [HOUR, -HOUR])
def test_a_wrong_clock_neither_takes_nor_prolongs_a_lease(shared_url: str, name: str, skew: float) -> None:
    """A server whose clock is wrong respects a running lease, and its own lease ends when it should."""
    with actors(shared_url, 1) as (honest,), actors(shared_url, 1, skew=skew) as (skewed,):
        assert honest.do("race", name=name, ttl=60)["won"]
        assert skewed.do("race", name=name, ttl=60)["why"] == "held"
        assert honest.do("release")
        assert skewed.do("race", name=name, ttl=1)["won"]
        assert honest.do("race", name=name, ttl=60)["why"] == "held"
        skewed.freeze()
        began = time.monotonic()
        while not honest.do("race", name=name, ttl=60)["won"]:
            assert time.monotonic() - began < 3
            time.sleep(0.05)


def test_a_clock_that_runs_ahead_starts_no_tick_early(shared_url: str, name: str) -> None:
    """What is due by a server's clock but not by the store's is too early."""
    with actors(shared_url, 1, skew=HOUR) as (skewed,):
        assert skewed.do("race_tick_of_now", name=name)["why"] == "too early"


def test_a_clock_that_runs_behind_fences_like_all_others(shared_url: str, name: str) -> None:
    """Fences do not go back with the clock of the server that wins."""
    with actors(shared_url, 1) as (honest,), actors(shared_url, 1, skew=-HOUR) as (behind,):
        first = honest.do("race", name=name, ttl=60)["fence"]
        honest.do("release")
        assert behind.do("race", name=name, ttl=60)["fence"] > first
