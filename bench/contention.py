"""Fifty racers, threads of several processes, for one name: who wins, and what an attempt takes."""

from __future__ import annotations

import multiprocessing
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from statistics import mean
from time import perf_counter

import redis

from bench.ratios import Times
from tickoff import Tickoff

PROCESSES, THREADS = 5, 10
BARE, OURS = "bare SET NX", "Tickoff"
_PATIENCE = 60.0

Attempt = Callable[[str], bool]
Try = tuple[str, int, bool, float]
"""Contender, round, whether it won, seconds."""


@dataclass(frozen=True)
class Fight:
    """Mean seconds per attempt and round; the rounds that had another number of winners than one."""

    times: Times
    spoilt: list[str]


def fight(url: str, rounds: int) -> Fight:
    """Let all race for a new name in every round, the contenders taking turns."""
    context = multiprocessing.get_context("spawn")
    start, tries = context.Barrier(PROCESSES * THREADS), context.Queue()
    racers = [context.Process(target=_race, args=(url, rounds, start, tries)) for _ in range(PROCESSES)]
    for racer in racers:
        racer.start()
    try:
        return _summed_up([one for _ in racers for one in tries.get(timeout=_PATIENCE + rounds)])
    finally:
        for racer in racers:
            racer.join(5)
            racer.kill()


def _race(url: str, rounds: int, start: Barrier, tries: Queue[list[Try]]) -> None:
    """One process: its threads share a client and a Tickoff, as those of a web server would."""
    client, jobs = redis.Redis.from_url(url), Tickoff(url)
    found: list[Try] = []
    attempts = {BARE: _bare(client), OURS: _ours(jobs)}
    work = [threading.Thread(target=_thread, args=(attempts, rounds, start, found)) for _ in range(THREADS)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    tries.put(found)


def _thread(attempts: dict[str, Attempt], rounds: int, start: Barrier, found: list[Try]) -> None:
    for turn in range(-1, rounds):
        for label in sorted(attempts, reverse=turn % 2 == 0):
            start.wait(_PATIENCE)
            begun = perf_counter()
            won = attempts[label](f"round-{turn}-{label.replace(' ', '-')}")
            took = perf_counter() - begun
            if turn >= 0:  # the one before opened the connections
                found.append((label, turn, won, took))


def _bare(client: redis.Redis) -> Attempt:
    return lambda name: bool(client.set(f"lock:{name}", secrets.token_hex(16), nx=True, ex=60))


def _ours(jobs: Tickoff) -> Attempt:
    kept = []

    def attempt(name: str) -> bool:
        lease = jobs.race(name, ttl="60s")
        kept.append(lease)  # a lease nobody refers to is not renewed
        return bool(lease)

    return attempt


def _summed_up(tries: Sequence[Try]) -> Fight:
    rounds: dict[tuple[str, int], list[Try]] = {}
    for one in tries:
        rounds.setdefault(one[:2], []).append(one)
    times: Times = {BARE: [], OURS: []}
    spoilt = []
    for (label, turn), all_of_it in sorted(rounds.items()):
        times[label].append(mean(seconds for *_, seconds in all_of_it))
        winners = sum(won for *_, won, _ in all_of_it)
        if winners != 1 or len(all_of_it) != PROCESSES * THREADS:
            spoilt.append(f"{label}, round {turn}: {winners} winners of {len(all_of_it)}")
    return Fight(times, spoilt)
