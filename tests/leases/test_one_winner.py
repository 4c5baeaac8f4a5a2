"""However many servers race, one wins."""

from __future__ import annotations

import os

import pytest

from ..racing import ten_processes

ROUNDS, SHORT = 2000, 500
"""`make full` races all rounds on every store; `make test` fewer where a round takes long."""

SLOW = ("sqlite", "mysql")


@pytest.mark.timeout(180)
def test_ten_processes_have_exactly_one_winner_a_round(shared_url: str, name: str) -> None:
    """Ten real processes race for one name; every round has one winner, and fences only grow."""
    short = shared_url.startswith(SLOW) and "TICKOFF_FULL" not in os.environ
    rounds = SHORT if short else ROUNDS
    wins = ten_processes(shared_url, name, rounds)
    assert [i for i, _ in wins] == list(range(rounds))
    fences = [fence for _, fence in wins]
    assert fences == sorted(set(fences))
