"""Firing lag of many no-op jobs that are due at one instant, beside APScheduler 3, which coordinates nothing.

    python bench/scheduler.py [--jobs 1000 10000] [--rounds 3] [--stores redis] [--spread 5]

Lag is the time from the instant to the first line of the job; CPU is that of the measured process, for each
job, from just before the instant until all is told to the store. APScheduler (`pip install 'apscheduler<4'`)
keeps its jobs in memory and runs them in its own default pool; Tickoff races for each of them on a real
store. Both are measured in turns, in processes of their own, in the same run. With `--spread 5` the jobs are
not due at one instant, but evenly within five seconds.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import logging
import pstats
import resource
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
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


@dataclass(frozen=True)
class Measured:
    """The lags, sorted, in seconds; CPU seconds for each job; the most memory, in MiB."""

    lags: Lags
    cpu: float
    memory: float


class Bell:
    """Takes down how late each job began, until all did."""

    def __init__(self, count: int, spread: float) -> None:
        self.count = count
        self.due = (int(time.time()) + 6 + count // 1000) * 1000
        self.dues = [self.due + int(spread * 1000 * i / count) for i in range(count)]
        self.lags: Lags = []

    def ring(self, due: int) -> None:
        """A job began."""
        self.lags.append(time.time() - due / 1000)

    async def ring_async(self, due: int) -> None:
        """The same on an event loop."""
        self.lags.append(time.time() - due / 1000)

    def measured(self, settle: Callable[[], object]) -> Measured:
        """Wait for all of them, and until the store was told."""
        time.sleep(max(0.0, self.due / 1000 - 0.2 - time.time()))
        before = time.process_time()
        deadline = time.monotonic() + _MISSED
        while len(self.lags) < self.count:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {len(self.lags)} of {self.count} jobs fired")
            time.sleep(0.05)
        settle()
        cpu = (time.process_time() - before) / self.count
        return Measured(sorted(self.lags), cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def tickoff(url: str, bell: Bell, slots: int, asynchronous: bool, profile: bool) -> Measured:
    """Our scheduler; the one instant is given by a schedule that ticks once."""
    from tickoff import Tickoff
    from tickoff.ticks.job import Job

    jobs = Tickoff(url, slots=slots, namespace=f"bench-{bell.due}")
    ring = bell.ring_async if asynchronous else bell.ring
    for i, due in enumerate(bell.dues):
        name = f"job-{i}"
        jobs._jobs[name] = Job(
            name=name, schedule=Once(due), work=_Work(ring, due), asynchronous=asynchronous, ttl=60_000
        )
    profiler = cProfile.Profile()
    if profile:
        _profile_the_ticks(profiler)
    with jobs:
        measured = bell.measured(lambda: jobs._ready().settler.flush(60))
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(35)
    return measured


class _Work(partial):  # type: ignore[type-arg]
    """A partial with a name, as functions have."""

    __qualname__ = "work"


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


def in_threads(bell: Bell) -> Measured:
    """APScheduler's BackgroundScheduler with its default pool."""
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(timezone=UTC)
    _add(scheduler, bell, bell.ring)
    scheduler.start()
    measured = bell.measured(lambda: None)
    scheduler.shutdown()
    return measured


def on_a_loop(bell: Bell) -> Measured:
    """APScheduler's AsyncIOScheduler with coroutine functions."""
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    async def main() -> Measured:
        scheduler = AsyncIOScheduler(timezone=UTC)
        _add(scheduler, bell, bell.ring_async)
        scheduler.start()
        measured = await asyncio.to_thread(bell.measured, lambda: None)
        scheduler.shutdown()
        return measured

    return asyncio.run(main())


def _add(scheduler: object, bell: Bell, ring: Callable[[int], object]) -> None:
    for i, due in enumerate(bell.dues):
        when = datetime.fromtimestamp(due / 1000, UTC)
        options = {"run_date": when, "id": f"job-{i}", "misfire_grace_time": None}
        scheduler.add_job(partial(ring, due), "date", **options)  # type: ignore[attr-defined]


def _measure(words: list[str]) -> Measured:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    *said, found = done.stdout.splitlines()
    print("\n".join(said), end="\n" if said else "")
    return Measured(**json.loads(found))


def _measured(words: list[str]) -> Measured:
    kind, count, spread, *more = words
    logging.basicConfig(level=logging.ERROR)
    bell = Bell(int(count), float(spread))
    if kind == "apscheduler-threads":
        return in_threads(bell)
    if kind == "apscheduler-asyncio":
        return on_a_loop(bell)
    url, slots, profile = more
    return tickoff(url, bell, int(slots), kind == "tickoff-asyncio", profile == "profile")


def _quantile(lags: Lags, share: float) -> float:
    return lags[min(len(lags) - 1, int(len(lags) * share))] * 1000


def _contenders(options: Namespace, urls: dict[str, str], count: int) -> dict[str, list[str]]:
    profile = "profile" if options.profile else "plain"
    spread = str(options.spread)
    found = {
        "APScheduler, threads": ["apscheduler-threads", str(count), spread],
        "APScheduler, asyncio": ["apscheduler-asyncio", str(count), spread],
    }
    for store, url in urls.items():
        for slots in options.slots:
            for colour in ("threads", "asyncio"):
                words = [f"tickoff-{colour}", str(count), spread, url, str(slots), profile]
                found[f"Tickoff, {colour}, {store}, {slots} slots"] = words
    return found


def main() -> int:
    """Measure in turns, and print."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, nargs="+", default=[32])
    parser.add_argument("--stores", nargs="+", default=list(_SERVERS), choices=list(_SERVERS))
    parser.add_argument("--spread", type=float, default=0.0, help="seconds over which the jobs are due")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--measure", nargs="+", help="(the measuring process itself)")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(asdict(_measured(options.measure))))
        return 0
    servers = {store: _SERVERS[store]() for store in options.stores}
    urls = {store: server.__enter__().url for store, server in servers.items()}
    try:
        for count in options.jobs:
            _print_turns(count, options, _contenders(options, urls, count))
    finally:
        for server in servers.values():
            server.__exit__(None, None, None)
    return 0


def _print_turns(count: int, options: Namespace, contenders: dict[str, list[str]]) -> None:
    measured: dict[str, list[Measured]] = {label: [] for label in contenders}
    for _ in range(options.rounds):
        for label, words in contenders.items():
            measured[label].append(_measure(words))
    when = f"due within {options.spread:g} s" if options.spread else "due at one instant"
    print(
        f"\n{count:,} no-op jobs {when}: lag in ms, own CPU in µs a job, medians of {options.rounds} rounds"
    )
    for label, found in measured.items():
        print(_line(label, found), flush=True)


def _line(label: str, found: list[Measured]) -> str:
    p50, p99 = (statistics.median(_quantile(one.lags, share) for one in found) for share in (0.5, 0.99))
    cpu, memory = statistics.median(one.cpu for one in found) * 1e6, max(one.memory for one in found)
    return f"  {label:36} p50 {p50:8.1f}  p99 {p99:8.1f}  CPU {cpu:6.1f}  {memory:4.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
