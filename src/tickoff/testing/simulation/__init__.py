"""A fleet in virtual time: the real policy, a reference store, and a network, clocks and processes that fail.

from tickoff.testing.simulation import simulate

def define(jobs):
    @jobs.every("10s")
    def job(tick): ...

for seed in range(1000):
    assert not (report := simulate(define, seed=seed)).violations, report.tale()
"""

from ...ground.clocks import sleep
from .fleet import simulate
from .report import Report, Start
from .wire import NO_FAULTS, Faults

__all__ = ["NO_FAULTS", "Faults", "Report", "Start", "simulate", "sleep"]
