"""`rate=`: what is refused, how loans are spent, and a fleet against an API with a hard limit."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from itertools import pairwise

import pytest

from tests.records.provider import provider
from tests.records.shop import Shop, eventually
from tickoff import Tickoff
from tickoff.errors import ConfigError
from tickoff.lending import Loan
from tickoff.records.purse import Purse
from tickoff.records.rate import Pace, pace_of

FULL = os.environ.get("TICKOFF_FULL") == "1"
LENGTH = 60 if FULL else 10


@pytest.mark.parametrize("rate", ["100", "100/d", "/s", "0/s", "-1/s", "1e3/s", "", 100, "9000000/s"])
def test_a_rate_that_cannot_be_kept_is_refused_when_decorating(rate: object) -> None:
    """With the way to write one."""
    with pytest.raises(ConfigError, match=r'rate=.*"100/s"'):
        Tickoff("memory://").each("contacts", status="status", rate=rate)(print)


@pytest.mark.parametrize(
    ("rate", "each_second"),
    [("100/s", 100), ("2.5/s", 2.5), ("600/m", 10), ("10/m", 1 / 6), ("3600/h", 1), ("1/h", 1 / 3600)],
)
def test_windows_lend_a_little_less_than_the_rate(rate: str, each_second: float) -> None:
    """So that the provider, which counts by its own clock, never counts more."""
    pace = pace_of(rate)
    lent = pace.limit / pace.window * 1000
    assert each_second * 0.969 <= lent <= each_second * 0.9701
    assert pace.limit == 1 or pace.window <= 6000


def spent(purse: Purse, until: float, step: float = 0.001) -> list[float]:
    """When a caller that is always ready makes its calls."""
    instants, now = [], 0.0
    while now < until:
        if purse.spend(now):
            instants.append(now)
        now += step
    return instants


def test_the_calls_of_a_window_are_evenly_spaced_however_they_were_lent() -> None:
    """Two servers with half of them each call as evenly as one with all."""
    one, two = Purse(Pace(100, 1000)), Purse(Pace(100, 1000))
    one.put(Loan(first=0, size=50, until=1000, now=0), 0.0)
    two.put(Loan(first=50, size=50, until=1000, now=0), 0.0)
    instants = sorted(spent(one, 1.0) + spent(two, 1.0))
    assert len(instants) == 100
    assert max(later - earlier for earlier, later in pairwise(instants)) < 0.012


def test_what_is_lent_is_void_when_its_window_ends() -> None:
    """A server that was stopped meanwhile makes none of these calls, and a later loan revives none."""
    purse = Purse(Pace(100, 1000))
    purse.put(Loan(first=0, size=100, until=1000, now=0), 0.0)
    assert not purse.spend(1.0)
    purse.put(Loan(first=0, size=3, until=2000, now=1000), 1.0)
    assert len(spent(purse, 3.0)) == 3


def test_calls_that_were_held_up_are_not_made_up_for_later() -> None:
    """After a stop of half a window there is half of it left, at the same pace."""
    purse = Purse(Pace(100, 1000))
    purse.put(Loan(first=0, size=100, until=1000, now=0), 0.0)
    assert not purse.spend(-0.1)
    late = [purse.spend(0.5) for _ in range(10)]
    assert late.count(True) <= 4


@pytest.mark.timeout(240)
def test_four_servers_keep_the_rate_and_go_on_when_one_is_killed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all of the rate is used, nearly none of the calls is refused; its share goes to the others."""
    if shop.kind == "mariadb" and not FULL:
        pytest.skip("the long form tries it")
    shop.stock(100 * (LENGTH + 30))
    with provider(latency=0.03, limit=100) as api, ExitStack() as stack:
        monkeypatch.setenv("SHOP_API", api.address)
        servers = [
            stack.enter_context(shop.server("limited", "serve", concurrency=8, rate="100/s", ttl="60s"))
            for _ in range(4)
        ]
        eventually(lambda: len(api.accepted) > 300)
        start = time.monotonic()
        time.sleep(LENGTH)
        end = time.monotonic()
        refused = sum(start <= at < end for at in api.refused)
        rate = api.rate(start, end)
        servers[0].signal(signal.SIGKILL)
        time.sleep(5)
        after = api.rate(time.monotonic() - 2.0, time.monotonic())
        said = f"{rate:.1f}/s, {refused} refused, {after:.1f}/s after a kill"
    print(shop.kind, said, api.refused and [f"{at - start:.2f}" for at in api.refused])
    assert (95 if FULL else 85) <= rate <= 100.5, said  # a busy machine calls late, and late calls are void
    assert refused < 0.01 * 100 * LENGTH, said
    assert after >= (93 if FULL else 80), said
