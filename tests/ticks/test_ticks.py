"""The scheduler in virtual time: who runs which tick, and what becomes of those that cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tickoff.ground.world import entered
from tickoff.leases.referee import Referee
from tickoff.model import Outcome
from tickoff.schedules.schedule import every
from tickoff.ticks.events import Kind

from ..virtual import NOON, VirtualServer, World, job


@pytest.fixture
def world() -> Iterator[World]:
    """A world in which nothing happened yet."""
    made = World()
    with entered(made):
        yield made


def ran(world: World, name: str = "job") -> list[float]:
    """The ticks that ran well, in seconds since the world began."""
    return [tick for tick, outcome in world.outcomes(name) if outcome == "ok"]


def each_tick_ran_once(world: World, upto: float, period: float, name: str = "job") -> bool:
    """Whether the history has every tick once, and each of them ended well."""
    wanted = [period * i for i in range(1, int(upto // period) + 1)]
    return world.outcomes(name) == [(tick, "ok") for tick in wanted]


def failing(times: int) -> Callable[[], None]:
    """A function that fails so many times."""
    left = iter(range(times))

    def work() -> None:
        if next(left, None) is not None:
            raise ValueError("no luck")

    return work


def test_every_tick_runs_once_on_ten_servers(world: World) -> None:
    """Whoever wins, nobody runs it again."""
    fleet = [world.server(job()) for _ in range(10)]
    world.run(601)
    assert each_tick_ran_once(world, 600, 60)
    assert sum(len(server.outcomes()) for server in fleet) == 10


def test_a_job_that_is_seen_for_the_first_time_runs_nothing_older(world: World) -> None:
    """Even if its last tick was a moment ago."""
    world.run(61)
    world.server(job())
    world.run(50)
    assert world.outcomes() == []


def test_a_server_that_starts_takes_the_last_tick_within_a_minute(world: World) -> None:
    """A deploy across the hour loses nothing."""
    first = world.server(job(schedule=every("10m")))
    world.run(601)
    world.kill(first)
    world.run(658)
    world.server(job(schedule=every("10m")))
    world.run(1)
    assert ran(world) == [600, 1200]


@pytest.mark.parametrize(("catch_up", "runs"), [(False, 1), (True, 2)])
def test_a_tick_of_more_than_a_minute_ago_is_caught_up_only_on_request(
    world: World, catch_up: bool, runs: int
) -> None:
    """And then once, however many were missed."""
    one = job(schedule=every("10m"), catch_up=catch_up)
    first = world.server(one)
    world.run(601)
    world.kill(first)
    world.run(3600 - 535)
    world.server(one)
    world.run(1)
    assert len(ran(world)) == runs


def test_ticks_that_fell_into_a_pause_are_never_caught_up(world: World) -> None:
    """They are in the history as skipped, and a server that starts later lets them be."""
    one = job(catch_up=True)
    first = world.server(one)
    world.run(61)
    world.store.steer("job", "ann", "migration")
    world.run(60)
    world.kill(first)
    world.run(180)
    world.store.steer("job", "ann", None)
    before = world.outcomes()
    assert [outcome for _, outcome in before] == ["ok", "skipped"]
    world.server(one)
    world.run(1)
    assert world.outcomes() == before


def test_a_tick_due_while_the_former_one_runs_is_skipped_and_recorded(world: World) -> None:
    """By one server, and told once."""
    fleet = [world.server(job()) for _ in range(3)]
    world.lasts["job"] = 90
    world.run(271)
    assert [outcome for _, outcome in world.outcomes()] == ["ok", "skipped", "ok", "skipped"]
    told = [event for server in fleet for event in server.events if event.kind is Kind.SKIPPED]
    assert len(told) == 2
    assert "still at work" in told[0].error


@pytest.mark.parametrize("foreign", [False, True])
def test_a_name_that_is_held_by_no_tick_delays_the_tick(world: World, foreign: bool) -> None:
    """A plain lock, or a manual run: the tick comes as soon as it ends."""
    world.server(job())
    holder = Referee(world.store)
    bid = holder.manual_bid("job", 600_000, world.wall()) if foreign else holder.bid("job", 600_000)
    assert world.store.race([bid])[0].ok
    world.run(100)
    assert ran(world) == []
    world.store.release("job", bid.token)
    world.run(1.2)
    assert ran(world) == [60]


def test_a_late_server_does_not_run_a_tick_again(world: World) -> None:
    """The job lasted no time, and its lock is long gone."""
    world.server(job())
    late = world.server(job())
    for minute in range(1, 6):
        behind = world.wall() - 30_000
        late.referee.time._sample = None
        late.referee.time.learn(behind, world.now, world.now)
        world.run(60 * minute + 50 - (world.wall() - NOON) / 1000)
    assert each_tick_ran_once(world, 300, 60)
    assert world.store.count("take") == 10
    assert late.outcomes() == []


def test_an_early_server_asks_once_more_when_the_tick_has_come(world: World) -> None:
    """Its estimate of the store's clock is 40 ms ahead: no loss, and no flood of races."""
    server = world.server(job())
    world.ahead = -40
    server.referee.time.learn = lambda *_: None  # type: ignore[method-assign]
    world.run(90)
    assert ran(world) == [60]
    assert server.outcomes() == ["ok"]
    assert world.store.count("take") <= 3


def test_a_store_whose_clock_is_set_forward_is_followed(world: World) -> None:
    """Within seconds, not when the next tick was due by the old reckoning."""
    server = world.server(job(schedule=every("1h")))
    world.run(1)
    world.ahead = 3_600_000
    server.referee.time.learn(world.wall(), world.now, world.now)
    world.run(6)
    assert len(ran(world)) == 1


def test_a_failed_tick_is_retried_until_its_attempts_are_used_up(world: World) -> None:
    """After one second, then after two."""
    server = world.server(job(work=failing(9), attempts=3))
    world.run(90)
    assert [run.outcome for run in world.history()] == [Outcome.FAILED] * 3
    assert [run.attempt for run in world.history()] == [1, 2, 3]
    assert {run.tick for run in world.history()} == {NOON + 60_000}
    gaps = [b.started - a.started for a, b in zip(world.history(), world.history()[1:], strict=False)]
    assert gaps == [pytest.approx(1000, abs=60), pytest.approx(2000, abs=60)]
    assert len(server.outcomes()) == 3


def test_a_retry_that_succeeds_is_the_last(world: World) -> None:
    """And `since` moves."""
    world.server(job(work=failing(1), attempts=3))
    world.run(90)
    assert [run.outcome for run in world.history()] == [Outcome.FAILED, Outcome.OK]
    assert world.store.read(["job"])[0].entry.since == NOON + 60_000


def test_retries_do_not_keep_a_server_from_the_next_tick(world: World) -> None:
    """The pause before the fifth attempt would go beyond it."""
    world.server(job(schedule=every("10s"), work=failing(100), attempts=9))
    world.run(59)
    first = [run for run in world.history() if run.attempt == 1]
    assert [run.tick - NOON for run in first] == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert all(run.started - run.tick < 100 for run in first)


def test_another_server_retries_what_its_winner_cannot(world: World) -> None:
    """The winner failed and died: a stand-by takes the tick up before its lease would have ended."""
    one = job(work=failing(1), attempts=2, schedule=every("10m"), ttl=2000)
    fleet = [world.server(one) for _ in range(3)]
    world.run(600.01)
    winner = next(server for server in fleet if server.outcomes())
    world.kill(winner)
    world.run(5)
    assert [run.outcome for run in world.history()] == [Outcome.FAILED, Outcome.OK]


def test_a_stand_by_takes_the_tick_of_a_dead_server_over(world: World) -> None:
    """recover="now": within the TTL and two seconds, the same tick, as its second attempt."""
    one = job(takeover=True, attempts=3, schedule=every("10m"), ttl=10_000)
    for _ in range(4):
        world.server(one)
    world.lasts["job"] = 30
    world.run(620)
    world.kill(world.at_work()[0])
    died = world.wall()
    world.run(13)
    assert world.store.read(["job"])[0].ok
    assert world.store.read(["job"])[0].entry.taken <= died + 12_000
    world.run(60)
    assert [(run.outcome, run.attempt) for run in world.history()] == [
        (Outcome.CRASHED, 1),
        (Outcome.OK, 2),
    ]


def test_without_recover_nobody_touches_the_tick_of_a_dead_server(world: World) -> None:
    """The next tick starts clean, and the history says what happened."""
    one = job(schedule=every("1m"), ttl=10_000)
    for _ in range(4):
        world.server(one)
    world.lasts["job"] = 30
    world.run(62)
    world.kill(world.at_work()[0])
    world.run(90)
    assert world.outcomes() == [(60, "crashed"), (120, "ok")]


def test_a_tick_that_kills_every_server_ends(world: World) -> None:
    """A takeover charges an attempt."""
    one = job(takeover=True, attempts=3, schedule=every("10m"), ttl=5_000)
    fleet = [world.server(one) for _ in range(6)]
    world.lasts["job"] = 30
    for _ in range(400):
        world.run(2)
        if world.works:
            world.kill(world.at_work()[0])
    assert len(servers_of(fleet)) == 3
    world.run(500)
    assert [(tick, outcome) for tick, outcome in world.outcomes() if tick == 600] == [(600, "crashed")] * 3


def test_an_outage_lets_the_tick_go(world: World) -> None:
    """on_outage="skip"; the next one runs."""
    world.server(job())
    world.store.down = True
    world.run(65)
    world.store.down = False
    world.run(70)
    assert ran(world) == [120]


def test_a_patient_job_waits_for_the_store(world: World) -> None:
    """on_outage="wait": the tick runs as soon as the store answers."""
    world.server(job(patient=True))
    world.run(10)
    world.store.down = True
    world.run(70)
    world.store.down = False
    world.run(2)
    assert ran(world) == [60]


def test_a_store_that_is_down_at_the_start_is_asked_again(world: World) -> None:
    """A server may start before its store."""
    world.store.down = True
    world.server(job())
    world.run(5)
    world.store.down = False
    world.run(60)
    assert ran(world) == [60]


def test_no_server_takes_more_than_it_has_slots_for(world: World) -> None:
    """The rest is for others, or for later: a slot that becomes free is used at once."""
    jobs = [job(f"job-{i}") for i in range(10)]
    for one in jobs:
        world.lasts[one.name] = 5
    server = world.server(*jobs, slots=4)
    world.run(61)
    assert server.runs.free == 0
    assert len(server.events) == 4
    world.run(20)
    assert all(ran(world, one.name) == [60] for one in jobs)


def test_jobs_due_at_one_instant_race_in_one_trip(world: World) -> None:
    """As many as there are slots for are won by it."""
    world.server(*[job(f"job-{i}") for i in range(100)], slots=100)
    world.run(61)
    assert [trip for trip in world.store.trips if trip[0] == "take"] == [("take", 100)]


def test_a_thousand_jobs_cost_twenty_servers_one_trip_and_one_a_win(world: World) -> None:
    """The takes of every server are counted on a store of its own in front of the shared one."""
    jobs = [job(f"job-{i}") for i in range(1000)]
    for one in jobs:
        world.lasts[one.name] = 0.5
    counted = [Counting(world) for _ in range(20)]
    fleet = [world.server(*jobs, slots=32, store=store) for store in counted]
    world.run(100)
    wins = [len(server.outcomes()) for server in fleet]
    assert sum(wins) == 1000
    assert [store.takes <= 1 + won for store, won in zip(counted, wins, strict=True)] == [True] * 20
    assert all(won > 0 for won in wins), wins


class Counting:
    """A store of its own in front of the world's, which counts races."""

    def __init__(self, world: World) -> None:
        self.takes = 0
        self._store = world.store

    def take(self, *arguments: object) -> object:
        """Count, and pass on."""
        self.takes += 1
        return self._store.take(*arguments)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_a_jittered_tick_starts_later_but_keeps_its_instant(world: World) -> None:
    """On all servers alike, and not the same for every tick."""
    one = job(jitter=30_000)
    for _ in range(3):
        world.server(one)
    world.run(659)
    assert each_tick_ran_once(world, 600, 60)
    runs = world.history()
    delays = [run.started - run.tick for run in runs]
    assert delays == [pytest.approx(one.delay(run.tick), abs=2) for run in runs]
    assert len(set(delays)) > 3


def test_a_server_that_stops_races_no_more(world: World) -> None:
    """Not for what is due, nor for what failed, nor for a slot that becomes free."""
    server = world.server(job(attempts=3, work=failing(9)))
    world.lasts["job"] = 5
    world.run(61)
    server.ticks.quiet()
    server.ticks.stop()
    assert server.outcomes() == ["failed"]
    world.run(200)
    assert world.store.count("take") == 1
    assert [run.error for run in world.history()] == ["the server stopped before it ended"]


def test_what_is_won_while_the_server_stops_is_given_back(world: World) -> None:
    """Unstarted, so that another server may run it."""
    server = world.server(job())
    right = world.store.take

    def take(*arguments: object) -> object:
        server.ticks.quiet()
        return right(*arguments)  # type: ignore[arg-type]

    world.store.take = take  # type: ignore[method-assign, assignment]
    world.run(61)
    del world.store.take
    assert server.events == []
    entry = world.store.read(["job"])[0].entry
    assert entry.open
    assert not entry.live(world.wall())
    world.server(job())
    world.run(1)
    assert ran(world) == [60]


def test_a_slot_that_becomes_free_while_the_loop_looks_is_not_missed(world: World) -> None:
    """The run ends between the look at the slots and the decision to wait for one."""
    jobs = [job("job-0"), job("job-1")]
    world.lasts |= {"job-0": 3, "job-1": 3}
    server = world.server(*jobs, slots=1)

    class Runs(type(server.runs)):  # type: ignore[misc]
        """Ends its run while it is looked at."""

        @property
        def free(self) -> int:
            before: int = super().free
            if before == 0 and world.works:
                work = world.works.pop()
                work.call()
            return before

    server.runs.__class__ = Runs
    world.run(61)
    assert ran(world, "job-0") + ran(world, "job-1") == [60, 60]


def test_an_older_tick_is_dropped_when_the_next_is_due(world: World) -> None:
    """A server that was asleep takes the latest tick, not all that it slept through."""
    world.server(job())
    world.now += 200
    world.run(1)
    assert ran(world) == [180]


def servers_of(fleet: list[VirtualServer]) -> list[VirtualServer]:
    """Those that run something."""
    return [server for server in fleet if server.runs.free < server.runs.slots]
