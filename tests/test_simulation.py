"""The real policy on a simulated fleet: thousands of courses of events, each repeatable by its seed."""

from __future__ import annotations

import os

import pytest

from tickoff import Tickoff
from tickoff.testing.simulation import NO_FAULTS, Faults, Report, simulate, sleep

SEEDS = 10_000 if os.environ.get("TICKOFF_FULL") else 60
BATCHES = 4
"""The seeds are dealt out to so many tests, so that they can run side by side."""


def define(jobs: Tickoff) -> None:
    """A quick job, one taken over, one retried, one that is rare, and two that race for a lock."""

    @jobs.every("5s", ttl="10s")
    def quick() -> None:
        """A millisecond's work."""

    @jobs.every("7s", ttl="6s", recover="now")
    def taken_over() -> None:
        sleep(3)

    @jobs.every("40s", ttl="30s", on_outage="wait")
    def rare() -> None:
        """Nobody else may have run it when a late request arrives."""

    def with_lock() -> None:
        lease = jobs.race("shared", ttl="6s")
        if lease:
            sleep(2)
            lease.release()

    jobs.every("24s", ttl="6s", name="left")(with_lock)
    jobs.every("24s", ttl="6s", name="right")(with_lock)

    @jobs.every("10s", ttl="6s", attempts=3)
    def retried(tick) -> None:
        sleep(0.5)
        if tick.attempt < 2:
            raise ValueError("not yet")


@pytest.mark.timeout(3600 if os.environ.get("TICKOFF_FULL") else 120)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_seed_breaks_a_promise(batch):
    """Whatever is lost, late, stopped or killed: no tick too often, and all of them once it is calm."""
    for seed in range(batch, SEEDS, BATCHES):
        report = simulate(define, seed=seed, servers=1 + seed // BATCHES % 4)
        assert not report.violations, report.tale()


def test_a_store_that_forgets_is_survived():
    """After amnesia a tick may be started twice, but every server goes on, and all is well in the end."""
    forgot = 0
    for seed in range(8):
        report = simulate(define, seed=seed, faults=Faults(amnesia=0.003))
        assert not report.violations, report.tale()
        forgot += report.forgot
    assert forgot > 2


def test_the_same_seed_takes_the_same_course():
    """Else a failing seed could not be looked into."""
    assert _course(simulate(define, seed=7)) == _course(simulate(define, seed=7))
    assert _course(simulate(define, seed=7)) != _course(simulate(define, seed=8))


def test_the_faults_do_happen_and_stale_writes_are_refused():
    """A simulation without faults would prove nothing; stopped servers do come back and write."""
    reports = [simulate(define, seed=seed, faults=Faults(stopped=0.02)) for seed in range(12)]
    stories = [line for report in reports for line in report.story]
    for fault in (
        "killed",
        "stopped for",
        "cut off",
        "no answer to",
        "its clock is set",
        "an operator: release",
        "store's clock is set",
    ):
        assert any(fault in line for line in stories), fault
    assert sum(report.refused for report in reports) > 0


def test_without_faults_every_tick_is_run_once_at_once():
    """Nothing is refused, and a tick starts within a moment of its instant."""
    report = simulate(define, seed=1, faults=NO_FAULTS)
    assert not report.violations, report.tale()
    first = [start for start in report.starts if start.attempt == 1]
    assert max(start.at - start.tick / 1000 for start in first) < 0.5
    assert report.refused == 0


def _course(report: Report) -> list[str]:
    return [str(start) for start in report.starts]
