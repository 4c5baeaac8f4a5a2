"""Findings about servers, from what they tell."""

from __future__ import annotations

import os
import socket
from dataclasses import replace

from tickoff.model import Entry
from tickoff.operating.doctor.servers import of_clocks, of_jobs, of_leases, of_versions
from tickoff.operating.roster import Roster, roster_of
from tickoff.ticks.presence import Carried, Server

CARRIED = Carried(
    name="report",
    schedule="every 10m",
    digest="a",
    function="shop:report",
    ttl=60_000,
    timeout=None,
    attempts=1,
    recover="next",
    made=0,
)
ONE = Server(owner="web-1:1:x", version="1.0", started=1, skew=0.0, catalog="c1")
TWO = replace(ONE, owner="web-2:2:x", started=2, catalog="c2")


def roster(*servers: Server, other: Carried = CARRIED) -> Roster:
    return roster_of(servers, {"c1": [CARRIED], "c2": [other]})


def test_clocks_that_are_right_are_no_finding() -> None:
    assert list(of_clocks(0.4, roster(ONE))) == []


def test_wrong_clocks_are_named_with_how_wrong_they_are() -> None:
    (finding,) = of_clocks(-90.0, roster(ONE, replace(TWO, skew=3600.0)))
    assert finding.check == "clock"
    assert "this machine is 1 minute 30 seconds behind" in finding.what
    assert "web-2 (pid 2) is 1 hour ahead" in finding.what
    assert "NTP" in finding.remedy


def test_several_versions_are_named() -> None:
    (finding,) = of_versions("1.0", roster(ONE, replace(TWO, version="1.1")))
    assert "1.0, 1.1" in finding.what
    assert list(of_versions("1.0", roster(ONE))) == []
    assert list(of_versions("1.0", roster())) == []


def test_servers_that_mean_different_things_by_one_name_are_named() -> None:
    (schedule,) = of_jobs(roster(ONE, TWO, other=replace(CARRIED, schedule="every 5m")))
    assert "report is 'every 5m' on web-2 (pid 2), 'every 10m' on web-1 (pid 1)" in schedule.what
    (function,) = of_jobs(roster(ONE, TWO, other=replace(CARRIED, function="other:report")))
    assert "report is other:report on web-2 (pid 2), shop:report on web-1 (pid 1)" in function.what
    (zones,) = of_jobs(roster(ONE, TWO, other=replace(CARRIED, digest="b")))
    assert "time zone data differ" in zones.what
    assert list(of_jobs(roster(ONE, TWO))) == []


def test_a_digest_of_another_day_is_no_difference() -> None:
    assert list(of_jobs(roster(ONE, TWO, other=replace(CARRIED, digest="b", made=86_400_000)))) == []


def test_jobs_without_any_server_are_a_finding() -> None:
    (finding,) = of_jobs(roster())
    assert (finding.check, finding.what) == ("servers", "no server is there to run 1 job")


def test_a_lease_of_a_server_that_is_gone_is_named() -> None:
    held = Entry(name="report", token="t", tick=5, until=60_000, scheduled=True)
    gone = replace(held, owner="web-9:9:x")
    (finding,) = of_leases(roster(ONE), [gone], now=10_000)
    assert "report by web-9 (pid 9) for another 50 seconds" in finding.what
    assert list(of_leases(roster(ONE), [replace(held, owner=ONE.owner)], now=10_000)) == []
    assert list(of_leases(roster(ONE), [gone], now=70_000)) == []
    assert list(of_leases(roster(ONE), [replace(gone, tick=0)], now=10_000)) == []


def test_a_leader_that_is_gone_is_named() -> None:
    """Others are there to lead, and wait for its TTL."""
    watch = replace(CARRIED, name="watch", schedule="", leads=True)
    led = Entry(name="watch", token="t", until=60_000, owner="web-9:9:x")
    there = roster_of([ONE], {"c1": [watch]})
    (finding,) = of_leases(there, [led], now=10_000)
    assert "watch by web-9 (pid 9) for another 50 seconds" in finding.what
    assert list(of_leases(there, [replace(led, owner=ONE.owner)], now=10_000)) == []
    (schedule,) = of_jobs(roster_of([ONE, TWO], {"c1": [watch], "c2": [replace(watch, function="b:c")]}))
    assert "watch is b:c on web-2 (pid 2), shop:report on web-1 (pid 1)" in schedule.what


def test_a_holder_on_this_machine_is_gone_when_its_process_is() -> None:
    here = socket.gethostname()[:100]
    held = Entry(name="report", token="t", until=60_000, owner=f"{here}:{os.getpid()}:x")
    assert list(of_leases(roster(ONE), [held], now=10_000)) == []
    dead = replace(held, owner=f"{here}:4194999:x")
    assert len(list(of_leases(roster(ONE), [dead], now=10_000))) == 1
