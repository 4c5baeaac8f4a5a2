"""Findings about durations, from the history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tickoff.model import Outcome, Run
from tickoff.operating.doctor.durations import Seen, of_durations, shortest_period
from tickoff.operating.roster import Listed
from tickoff.schedules.schedule import cron, every
from tickoff.ticks.presence import Carried

JOB = Listed(
    Carried(
        name="report",
        schedule="every 10m",
        digest="a",
        function="shop:report",
        ttl=60_000,
        timeout=100.0,
        attempts=1,
        recover="next",
        made=0,
    )
)


def checks(
    seconds: float, outcome: Outcome = Outcome.OK, period: int = 600_000, ttl: int = 60_000
) -> list[str]:
    """What is found after one run."""
    ended = 1000 + int(seconds * 1000)
    run = Run(name="report", tick=1, fence=1, owner="a", started=1000, ended=ended, outcome=outcome)
    job = Listed(replace(JOB.carried, ttl=ttl))
    return [finding.check for finding in of_durations([Seen.of(job, period, [run])])]


@pytest.mark.parametrize(("seconds", "found"), [(10, []), (79, []), (80, ["timeout"]), (100, ["timeout"])])
def test_runs_near_their_timeout_are_found(seconds: float, found: list[str]) -> None:
    assert checks(seconds) == found


def test_runs_longer_than_their_period_are_found() -> None:
    assert checks(31, period=30_000) == ["overlap"]
    assert checks(29, period=30_000) == []


def test_a_ttl_that_was_too_short_is_found() -> None:
    assert checks(10, Outcome.LOST) == ["ttl-short"]


def test_a_ttl_that_makes_crashes_cost_ticks_is_found() -> None:
    assert checks(10, Outcome.CRASHED, period=30_000) == ["ttl-long"]
    assert checks(10, Outcome.CRASHED, period=30_000, ttl=10_000) == []
    assert checks(10, Outcome.OK, period=30_000) == []


def test_many_jobs_are_one_finding_that_names_some() -> None:
    run = Run(name="x", tick=1, fence=1, owner="a", started=1000, ended=99_000, outcome=Outcome.OK)
    jobs = [Listed(replace(JOB.carried, name=f"job-{i}")) for i in range(8)]
    (finding,) = of_durations([Seen.of(job, 600_000, [run]) for job in jobs])
    assert "job-0 took 1 minute 38 seconds of 1 minute 40 seconds" in finding.what
    assert finding.what.endswith("and 3 more")


def test_the_shortest_time_between_two_ticks_counts() -> None:
    assert shortest_period(every("30s"), 0) == 30_000
    assert shortest_period(cron("0,10 * * * *"), 0) == 600_000
