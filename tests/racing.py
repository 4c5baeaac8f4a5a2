"""Ten processes that race for one name, round after round, in step."""

from __future__ import annotations

from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from tests.processes import forked
from tickoff import Lease, Tickoff

Wins = list[tuple[int, int]]
"""Rounds won, with their fences."""


def race_in_step(url: str, name: str, rounds: int, gate: Barrier, results: Queue[Wins]) -> None:
    """Race once a round; the winner lets go when all have raced."""
    jobs = Tickoff(url)
    wins: Wins = []
    for i in range(rounds):
        gate.wait(60)
        verdict = jobs.race(name, ttl="5m")
        if isinstance(verdict, Lease):
            wins.append((i, verdict.fence))
        gate.wait(60)
        if isinstance(verdict, Lease):
            assert verdict.release()
    results.put(wins)


def ten_processes(url: str, name: str, rounds: int, racers: int = 10) -> Wins:
    """Who won which round, over all processes."""
    context = forked()
    gate, results = context.Barrier(racers), context.Queue()
    arguments = (url, name, rounds, gate, results)
    processes = [context.Process(target=race_in_step, args=arguments, daemon=True) for _ in range(racers)]
    for process in processes:
        process.start()
    wins = [win for _ in processes for win in results.get(timeout=110)]
    for process in processes:
        process.join(10)
    return sorted(wins)


def first_use(url: str, gate: Barrier, results: Queue[str]) -> None:
    """Use a store for the first time, at the same moment as others."""
    jobs = Tickoff(url)
    gate.wait(60)
    verdict = jobs.race("first", ttl="60s")
    results.put("won" if isinstance(verdict, Lease) else verdict.why)
    gate.wait(60)
