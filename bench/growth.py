"""How the load of one Redis grows with a fleet: 1 to 1,000 servers with 1 to 1,000 jobs at one instant.

The servers are whole ones, in one process: the simulation's hub gives them turns, by the real clock, against
a real Redis. What is counted is what they ask of it; how long they take, all in one process, says nothing.
"""

from __future__ import annotations

import heapq
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import redis
from dev.servers import redis_server

from bench import page, report
from tickoff import Tickoff
from tickoff.ground.world import entered
from tickoff.stores import open_store
from tickoff.testing.simulation.hub import Hub, Process
from tickoff.ticks.job import Job

SERVERS, JOBS = (1, 10, 100, 1000), (1, 100, 1000)
IDLE = 20.0
"""Seconds in which nothing is due: what a fleet asks for just being there."""

_OF_TICKS = ("take", "settle")
_NAME = "job-"
"""Other names are raced for, too: a fleet elects who looks out for missed ticks."""
_SLICE = 1.0
_AHEAD = 1.0
"""Seconds from the end of the idle time to the instant."""
_NEVER = 4_000_000_000_000


@dataclass(frozen=True)
class Load:
    """What a fleet asked of Redis for one instant, and in a second without one."""

    servers: int
    jobs: int
    trips: int
    beyond: int
    """Trips beyond its wins, of the server with most of them."""
    commands: int
    cpu: float
    idle_trips: float
    idle_cpu: float

    @property
    def row(self) -> str:
        """A line of the table."""
        cells = (f"{self.trips:,}", f"{self.beyond}", f"{self.commands:,}", f"{self.cpu * 1000:,.0f} ms")
        idle = f"{self.idle_trips:,.1f} | {self.idle_cpu * 100:.2f} %"
        return f"| {self.servers:,} | {self.jobs:,} | {' | '.join(cells)} | {idle} |"


class Clocked(Hub):
    """A hub whose time is the real one: what is due later is waited for."""

    def __init__(self) -> None:
        super().__init__(seed=1)

    @property
    def now(self) -> float:
        """The machine's clock."""
        return time.time()

    @now.setter
    def now(self, _instant: float) -> None:
        """It goes by itself."""

    def elapsed(self) -> float:
        """One clock for all."""
        return time.time()

    def wall(self) -> int:
        """The same in ms."""
        return int(time.time() * 1000)

    def run(self, until: float) -> None:
        """Let everything happen that is due until then, in the order in which it is due."""
        while self._queue and self._queue[0][0] <= until:
            when, _, process, event = heapq.heappop(self._queue)
            time.sleep(max(0.0, when - time.time()))
            if process is None or self._may_go_on(process, event):
                self._take_turn(process, event)
        time.sleep(max(0.0, until - time.time()))


class Tally:
    """Round trips by server and by what was asked, and the ticks that each server ran."""

    def __init__(self, hub: Clocked) -> None:
        self._hub = hub
        self.calls: Counter[tuple[str, str]] = Counter()
        self.wins: Counter[str] = Counter()

    def call(self, name: str) -> None:
        """The server whose turn it is asks the store."""
        self.calls[self._hub.here(), name] += 1

    def win(self) -> None:
        """It runs a tick."""
        self.wins[self._hub.here()] += 1

    @property
    def ticks(self) -> Counter[str]:
        """The trips of each server that raced for ticks, or settled them."""
        found: Counter[str] = Counter()
        for (server, name), count in self.calls.items():
            found[server] += count * (name in _OF_TICKS)
        return found

    @property
    def beyond(self) -> int:
        """The most trips that a server made beyond its wins."""
        return max(trips - self.wins[server] for server, trips in self.ticks.items())


class Counted:
    """A store that all servers share; each call is one round trip."""

    def __init__(self, store: Any, tally: Tally) -> None:
        self._store, self._tally = store, tally

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counting(name, found) if callable(found) else found

    def within(self, limit: float) -> Counted:
        """Counted as well."""
        return Counted(self._store.within(limit), self._tally)

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            ours = name != "settle" or given[0][0].hold.name.startswith(_NAME)
            self._tally.call(name if ours else f"{name}, elsewhere")
            return call(*given)

        return counted


@dataclass(frozen=True)
class At:
    """A schedule of one tick."""

    tick: int
    text = "once"

    def after(self, instant: int) -> int:
        """The tick, as long as it lies ahead."""
        return self.tick if instant < self.tick else _NEVER

    def upto(self, instant: int) -> int | None:
        """The tick, once it has come."""
        return self.tick if instant >= self.tick else None

    def digest(self, now: int) -> str:  # noqa: ARG002 - as schedules are asked
        """The same for all."""
        return "once"


def load(servers: int, jobs: int) -> Load:
    """Start the fleet, let it idle, let one instant pass."""
    with redis_server() as server, redis.Redis(port=server.port) as client:
        hub = Clocked()
        tally = Tally(hub)
        idle_from = time.time() + 3 + servers * (0.01 + jobs * 0.00006)
        due = idle_from + IDLE
        with entered(hub):
            scheduled = _jobs(jobs, int((due + _AHEAD) * 1000), tally)
            _boot(hub, Counted(open_store(server.url), tally), servers, scheduled)
            hub.run(idle_from)
            if time.time() > idle_from + IDLE / 2:
                raise SystemExit(f"{servers} servers with {jobs} jobs took too long to start here")
            idle = _spent(client, tally, lambda: hub.run(due))
            busy = _spent(client, tally, lambda: _until_quiet(hub, tally))
            hub.close()
        return _load(servers, jobs, tally, idle, busy)


@dataclass(frozen=True)
class Spent:
    """What was asked and used meanwhile."""

    seconds: float
    trips: int
    commands: int
    cpu: float


def _load(servers: int, jobs: int, tally: Tally, idle: Spent, busy: Spent) -> Load:
    """Of what was used at the instant, being there is taken off."""
    share = busy.seconds / idle.seconds
    return Load(
        servers,
        jobs,
        tally.ticks.total(),
        tally.beyond,
        round(busy.commands - idle.commands * share),
        busy.cpu - idle.cpu * share,
        idle.trips / idle.seconds,
        idle.cpu / idle.seconds,
    )


def _boot(hub: Clocked, store: Counted, servers: int, jobs: dict[str, Job]) -> None:
    for i in range(servers):
        fleet_member = Tickoff(store)
        fleet_member._jobs.update(jobs)
        hub.at(hub.now, Process(f"server-{i}"), fleet_member._start)


def _jobs(count: int, due: int, tally: Tally) -> dict[str, Job]:
    names = [f"{_NAME}{i:04}" for i in range(count)]
    return {name: Job(name=name, schedule=At(due), work=tally.win, ttl=60_000) for name in names}


def _until_quiet(hub: Clocked, tally: Tally) -> None:
    """Until nobody has raced or settled for a while."""
    hub.run(hub.now + _AHEAD + _SLICE)
    before = 0
    while before != (now := tally.ticks.total()):
        before = now
        hub.run(hub.now + _SLICE)


def _spent(client: redis.Redis, tally: Tally, meanwhile: Callable[[], None]) -> Spent:
    before = _state(client, tally)
    meanwhile()
    return Spent(*(after - earlier for after, earlier in zip(_state(client, tally), before, strict=True)))


def _state(client: redis.Redis, tally: Tally) -> tuple[float, int, int, float]:
    told: dict[str, Any] = client.info("all")
    cpu = told["used_cpu_user"] + told["used_cpu_sys"]
    return time.time(), tally.calls.total(), told["total_commands_processed"], cpu


HEAD = """\
| servers | jobs | round trips | beyond its wins | commands | CPU of Redis | idle: trips/s | idle: CPU |
|---|---|---|---|---|---|---|---|"""


def main() -> int:
    """Measure each size, print, write."""
    options = _options()
    context = report.Context.of_now(" ".join(sys.argv[1:]), "-m bench.growth")
    rows = [HEAD]
    for servers in options.servers:
        for jobs in options.jobs:
            rows.append(load(servers, jobs).row)
            print(rows[-1], flush=True)
    if options.write:
        settings = "a Redis without persistence; all servers share one connection, and run no-op jobs"
        page.put(
            page.PAGE,
            "bench.growth writes",
            "\n".join(rows) + "\n\n" + report.told(replace(context, settings=settings)),
        )
    return 0


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="python -m bench.growth")
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS)
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
