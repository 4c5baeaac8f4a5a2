"""A holder that is stopped past its TTL and goes on as if nothing had happened."""

from __future__ import annotations

import time

from tests.processes import actors

TTL = 1.0


def test_a_stopped_holder_is_refused_and_told(shared_url: str, name: str) -> None:
    """Renewal, settlement and release of a zombie are refused; it learns; its successor is unharmed."""
    with actors(shared_url, 2) as (zombie, successor):
        won = zombie.do("race", name=name, ttl=TTL)
        assert won["won"]
        assert not successor.do("race", name=name, ttl=TTL)["won"]
        zombie.freeze()
        time.sleep(TTL * 1.2)
        taken = successor.do("race", name=name, ttl=60)
        assert taken["won"]
        assert taken["fence"] > won["fence"]
        zombie.thaw()
        assert "could not be renewed in time" in zombie.do("check")
        assert zombie.do("lost")
        assert zombie.do("renew") == "refused"
        assert zombie.do("settle") == "refused"
        assert zombie.do("store_release") is False
        assert zombie.do("release") is False
        assert successor.do("check") == "good"
        assert successor.do("renew") == "renewed"
        assert successor.do("release") is True


def test_a_running_holder_keeps_its_lease_for_many_ttls(shared_url: str, name: str) -> None:
    """Renewal goes on in the background, also while the work blocks."""
    with actors(shared_url, 2) as (holder, other):
        assert holder.do("race", name=name, ttl=TTL)["won"]
        holder.begin("sleep", seconds=3.2)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert other.do("race", name=name, ttl=TTL)["why"] == "held"
            time.sleep(0.1)
        assert holder.answer() == "slept"
        assert holder.do("check") == "good"


def test_a_killed_holder_frees_the_name_by_its_ttl(shared_url: str, name: str) -> None:
    """After kill -9 the name is free after at most the TTL, and not before its time."""
    with actors(shared_url, 2) as (victim, other):
        began = time.monotonic()
        assert victim.do("race", name=name, ttl=TTL)["won"]
        victim.kill()
        while not other.do("race", name=name, ttl=TTL)["won"]:
            assert time.monotonic() - began < TTL + 20  # a busy machine is late, not wrong
            time.sleep(0.02)
        assert time.monotonic() - began >= TTL * 0.9
