"""Firing lag of many no-op jobs that are due at one instant, beside APScheduler 3, which coordinates nothing.

    python bench/scheduler.py [--jobs 1000 10000] [--rounds 3] [--stores redis postgres] [--profile]

Lag is the time from the instant to the first line of the job. APScheduler (`pip install 'apscheduler<4'`)
keeps its jobs in memory and runs them in its own default pool; Tickoff races for each of them on a real
store. Both are measured in turns, in processes of their own, in the same run.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import logging
import pstats
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file is run as a script

from dev.servers import Server, postgres_server, redis_server  # noqa: E402

_SERVERS: dict[str, Callable[[], AbstractContextManager[Server]]] = {
    "redis": redis_server,
    "postgres": postgres_server,
}
_PERIOD = 31 * 86_400_000
_MISSED = 120.0
"""Seconds after which jobs that did not fire are given up."""

Lags = list[float]


class Bell:
    """Takes down when each job began, until all did."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.began: list[float] = []

    def ring(self) -> None:
        """A job began."""
        self.began.append(time.time())

    async def ring_async(self) -> None:
        """The same on an event loop."""
        self.began.append(time.time())

    def lags(self, due: float) -> Lags:
        """Wait for all of them; seconds after the instant, sorted."""
        deadline = time.monotonic() + _MISSED
        while len(self.began) < self.count:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {len(self.began)} of {self.count} jobs fired")
            time.sleep(0.05)
        return sorted(began - due for began in self.began)


def tickoff(url: str, count: int, slots: int, asynchronous: bool, profile: bool) -> Lags:
    """Our scheduler; the one instant is given by a schedule that ticks once."""
    from tickoff import Tickoff
    from tickoff.ticks.job import Job

    bell, due = Bell(count), _instant(count)
    jobs = Tickoff(url, slots=slots, namespace=f"bench-{due}")
    for i in range(count):
        work = bell.ring_async if asynchronous else bell.ring
        name = f"job-{i}"
        jobs._jobs[name] = Job(
            name=name, schedule=Once(due), work=work, asynchronous=asynchronous, ttl=60_000
        )
    profiler = cProfile.Profile()
    if profile:
        _profile_the_ticks(profiler)
    with jobs:
        lags = bell.lags(due / 1000)
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(35)
    return lags


def _profile_the_ticks(profiler: cProfile.Profile) -> None:
    """Profile what the scheduler's own thread does."""
    from tickoff.ticks.scheduler import Ticks

    step = Ticks.step

    def profiled(self: Ticks, now: float) -> float | None:
        return profiler.runcall(step, self, now)

    Ticks.step = profiled  # type: ignore[method-assign]


class Once:
    """A schedule of one tick."""

    text = "once"

    def __init__(self, tick: int) -> None:
        self._tick = tick

    def after(self, instant: int) -> int | None:
        """The tick, as long as it lies ahead."""
        return self._tick if instant < self._tick else self._tick + _PERIOD

    def upto(self, instant: int) -> int | None:
        """The tick, once it has come."""
        return self._tick if instant >= self._tick else None

    def digest(self, now: int) -> str:  # noqa: ARG002 - as schedules are asked
        """The same for all."""
        return f"{self._tick}"


def in_threads(count: int) -> Lags:
    """APScheduler's BackgroundScheduler with its default pool."""
    from apscheduler.schedulers.background import BackgroundScheduler

    bell, due = Bell(count), _instant(count)
    scheduler = BackgroundScheduler(timezone=UTC)
    _add(scheduler, bell.ring, count, due)
    scheduler.start()
    lags = bell.lags(due / 1000)
    scheduler.shutdown()
    return lags


def on_a_loop(count: int) -> Lags:
    """APScheduler's AsyncIOScheduler with coroutine functions."""
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    async def main() -> Lags:
        bell, due = Bell(count), _instant(count)
        scheduler = AsyncIOScheduler(timezone=UTC)
        _add(scheduler, bell.ring_async, count, due)
        scheduler.start()
        lags = await asyncio.to_thread(bell.lags, due / 1000)
        scheduler.shutdown()
        return lags

    return asyncio.run(main())


def _add(scheduler: object, work: Callable[[], object], count: int, due: int) -> None:
    when = datetime.fromtimestamp(due / 1000, UTC)
    for i in range(count):
        scheduler.add_job(work, "date", run_date=when, id=f"job-{i}", misfire_grace_time=None)  # type: ignore[attr-defined]


def _instant(count: int) -> int:
    """A whole second that leaves time to get ready, in ms."""
    return (int(time.time()) + 3 + count // 2000) * 1000


def _measure(words: list[str]) -> Lags:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    *said, lags = done.stdout.splitlines()
    print("\n".join(said), end="\n" if said else "")
    found: Lags = json.loads(lags)
    return found


def _measured(words: list[str]) -> Lags:
    kind, count, *more = words
    logging.basicConfig(level=logging.ERROR)
    if kind == "apscheduler-threads":
        return in_threads(int(count))
    if kind == "apscheduler-asyncio":
        return on_a_loop(int(count))
    url, slots, profile = more
    return tickoff(url, int(count), int(slots), kind == "tickoff-asyncio", profile == "profile")


def _quantile(lags: Lags, share: float) -> float:
    return lags[min(len(lags) - 1, int(len(lags) * share))] * 1000


def _contenders(options: Namespace, urls: dict[str, str], count: int) -> dict[str, list[str]]:
    profile = "profile" if options.profile else "plain"
    found = {
        "APScheduler, threads": ["apscheduler-threads", str(count)],
        "APScheduler, asyncio": ["apscheduler-asyncio", str(count)],
    }
    for store, url in urls.items():
        for slots in options.slots:
            for colour in ("threads", "asyncio"):
                words = [f"tickoff-{colour}", str(count), url, str(slots), profile]
                found[f"Tickoff, {colour}, {store}, {slots} slots"] = words
    return found


def main() -> int:
    """Measure in turns, and print."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, nargs="+", default=[32])
    parser.add_argument("--stores", nargs="+", default=list(_SERVERS), choices=list(_SERVERS))
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--measure", nargs="+", help="(the measuring process itself)")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_measured(options.measure)))
        return 0
    servers = {store: _SERVERS[store]() for store in options.stores}
    urls = {store: server.__enter__().url for store, server in servers.items()}
    try:
        for count in options.jobs:
            _print_turns(count, options.rounds, _contenders(options, urls, count))
    finally:
        for server in servers.values():
            server.__exit__(None, None, None)
    return 0


def _print_turns(count: int, rounds: int, contenders: dict[str, list[str]]) -> None:
    measured: dict[str, list[Lags]] = {label: [] for label in contenders}
    for _ in range(rounds):
        for label, words in contenders.items():
            measured[label].append(_measure(words))
    print(f"\n{count} no-op jobs due at one instant: firing lag in ms, medians of {rounds} rounds")
    for label, found in measured.items():
        p50, p99 = (statistics.median(_quantile(lags, share) for lags in found) for share in (0.5, 0.99))
        print(f"  {label:40}  p50 {p50:9.1f}   p99 {p99:9.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
