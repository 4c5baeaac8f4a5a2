"""However many servers race, one wins."""

from __future__ import annotations

import pytest

from .racing import ten_processes

ROUNDS = 2000


@pytest.mark.timeout(180)
def test_ten_processes_have_exactly_one_winner_a_round(shared_url: str, name: str) -> None:
    """Ten real processes race for one name; every round has one winner, and fences only grow."""
    wins = ten_processes(shared_url, name, ROUNDS)
    assert [i for i, _ in wins] == list(range(ROUNDS))
    fences = [fence for _, fence in wins]
    assert fences == sorted(set(fences))
