"""The alarm for missed ticks, in virtual time on the reference store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tickoff.ground.clocks import elapsed
from tickoff.leases.lease import Lease
from tickoff.leases.referee import Referee
from tickoff.model import Outcome
from tickoff.operating.watch import Watch
from tickoff.schedules.schedule import every
from tickoff.stores.memory import MemoryStore
from tickoff.ticks.events import Event, Events, Kind
from tickoff.ticks.job import Job
from tickoff.work import End

MINUTE = 60_000
START = 60 * 20_000 * MINUTE


class World:
    """A store with a clock of its own, and servers that watch it; what they tell is collected."""

    def __init__(self) -> None:
        self.now = START
        self.store = MemoryStore(lambda: self.now)
        self.told: list[Event] = []
        self.watches: list[tuple[Referee, Watch]] = []

    def server(self, *jobs: Job, store: MemoryStore | None = None) -> Referee:
        """A server that watches these jobs from now on; its loop is not started, `look` stands for it."""
        referee, events = Referee(store or self.store), Events()
        events.on(Kind.MISSED, self.told.append)
        watch = Watch(referee, "", jobs, events, 60.0)
        self._synchronise(referee)
        watch._note()
        self.watches.append((referee, watch))
        return referee

    def stop(self) -> None:
        """All servers go."""
        for referee, _ in self.watches:
            referee.close()
        self.watches = []

    def pass_time(self, ms: int) -> None:
        """Let time pass while every server looks, every fifteen seconds."""
        end = self.now + ms
        while self.now < end:
            self.now = min(self.now + 15_000, end)
            self.look()

    def look(self) -> None:
        """Every server's loop comes to its step."""
        for referee, watch in self.watches:
            self._synchronise(referee)
            watch.step(elapsed())
            assert referee.settler.flush(5)

    def run(self, job: Job, tick: int, outcome: Outcome | None = Outcome.OK) -> None:
        """A tick is won, and settled unless its server crashes."""
        referee = Referee(self.store)
        bid = referee.tick_bid(job.name, job.ttl, tick, attempts=job.attempts, takeover=job.takeover)
        lease = referee.race(bid)
        assert isinstance(lease, Lease)
        referee.keeper.drop(lease)
        if outcome is not None:
            referee.finish(lease, End(outcome, "" if outcome is Outcome.OK else "so it was"), job.attempts)
            assert referee.settler.flush(5)
        referee.close()

    @property
    def missed(self) -> list[tuple[str, int, int]]:
        """What was told: job, minutes since the start, how many ticks."""
        return [(event.job, (event.tick - START) // MINUTE, event.count) for event in self.told]

    def _synchronise(self, referee: Referee) -> None:
        referee.time.learn(self.now, elapsed(), elapsed())


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.stop()


def a_job(name: str = "report", minutes: int = 1, **more: Any) -> Job:
    return Job(name=name, schedule=every(minutes * 60), work=print, ttl=10_000, **more)


def seen(world: World, job: Job) -> Job:
    """A job that has run before."""
    world.run(job, world.now)
    return job


def test_a_tick_that_nobody_started_is_told_after_its_grace_and_once(world: World) -> None:
    """Neither before the grace has ended, nor again at later looks, nor by other servers."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.server(job)
    world.pass_time(10 * MINUTE + 59_000)
    assert world.missed == []
    world.pass_time(5 * MINUTE)
    assert world.missed == [("report", 10, 1)]
    assert "no server started it" in world.told[0].error


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
def test_a_tick_that_somebody_finished_is_none(world: World, outcome: Outcome) -> None:
    """However it ended: who ran it has told of that."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.pass_time(10 * MINUTE)
    world.run(job, START + 10 * MINUTE, outcome)
    world.pass_time(5 * MINUTE)
    assert world.missed == []


def test_a_new_job_has_missed_nothing_from_before_it_was_carried(world: World) -> None:
    """What lies before is nobody's business; a first tick that nobody starts is."""
    world.now += 9 * MINUTE + 30_000
    world.server(a_job(minutes=3))
    world.pass_time(3 * MINUTE)
    assert world.missed == []
    world.pass_time(MINUTE)
    assert world.missed == [("report", 12, 1)]


def test_a_tick_at_work_is_not_missed_and_is_once_its_server_crashed(world: World) -> None:
    """With recover="next" nobody takes it over; the alarm says whose crash it was."""
    job = seen(world, a_job(minutes=60))
    world.server(job)
    world.pass_time(60 * MINUTE)
    world.run(job, START + 60 * MINUTE, outcome=None)
    world.store.rewrite("report", lambda entry: _prolonged(entry, 20 * MINUTE))
    world.pass_time(15 * MINUTE)
    assert world.missed == []
    world.pass_time(10 * MINUTE)
    assert world.missed == [("report", 60, 1)]
    assert "crashed while it was at work on it" in world.told[0].error


def test_a_crash_that_the_next_tick_has_covered_is_told(world: World) -> None:
    """The marks have moved on; the history has not forgotten."""
    job = seen(world, a_job(minutes=1))
    world.server(job)
    for minute in range(1, 6):
        world.pass_time(MINUTE)
        world.run(job, world.now, outcome=None if minute == 2 else Outcome.OK)
    world.pass_time(MINUTE - 1)
    assert world.missed == [("report", 2, 1)]


def test_a_crash_that_no_look_has_seen_is_told_by_the_next_one(world: World) -> None:
    """A long run crashes just before the next tick is won: then the marks tell nothing of it any more."""
    job = seen(world, a_job(minutes=2))
    world.server(job)
    world.pass_time(2 * MINUTE)
    world.run(job, START + 2 * MINUTE, outcome=None)
    world.store.rewrite("report", lambda entry: _prolonged(entry, 115_000))
    world.pass_time(105_000)
    world.now = START + 4 * MINUTE
    world.run(job, world.now)
    world.pass_time(2 * MINUTE - 1)
    assert world.missed == [("report", 2, 1)]


def test_what_was_told_is_not_counted_again(world: World) -> None:
    """A crash is told; the tick after it, which nobody starts, is another alarm, for one tick."""
    job = seen(world, a_job(minutes=2))
    world.server(job)
    world.pass_time(2 * MINUTE)
    world.run(job, START + 2 * MINUTE, outcome=None)
    world.pass_time(4 * MINUTE - 1)
    assert world.missed == [("report", 2, 1), ("report", 4, 1)]


def test_a_tick_is_taken_over_in_peace(world: World) -> None:
    """With recover="now" the alarm waits for the losers that stand by, and goes off when none comes."""
    job = seen(world, a_job(minutes=60, attempts=3, takeover=True))
    world.server(job)
    world.pass_time(60 * MINUTE)
    world.run(job, START + 60 * MINUTE, outcome=None)
    world.pass_time(30_000)
    assert world.missed == []
    world.run(job, START + 60 * MINUTE)
    world.pass_time(5 * MINUTE)
    assert world.missed == []
    world.pass_time(55 * MINUTE)
    world.run(job, START + 120 * MINUTE, outcome=None)
    world.pass_time(5 * MINUTE)
    assert world.missed == [("report", 120, 1)]


def test_pauses_and_overlaps_set_no_alarm_off(world: World) -> None:
    """Somebody wanted the one; the other was decided, and told of."""
    paused, slow = seen(world, a_job("paused", 10)), seen(world, a_job("slow", 10))
    world.server(paused, slow)
    world.store.steer("paused", "ann", "maintenance")
    world.pass_time(10 * MINUTE)
    world.run(slow, START + 10 * MINUTE, outcome=None)
    world.store.rewrite("slow", lambda entry: _prolonged(entry, 60 * MINUTE))
    world.pass_time(10 * MINUTE)
    referee = Referee(world.store)
    assert not referee.race(referee.tick_bid("slow", 10_000, START + 20 * MINUTE))
    referee.close()
    world.pass_time(5 * MINUTE)
    world.store.steer("paused", "ann", None)
    world.pass_time(4 * MINUTE)
    assert world.missed == []


def test_a_pause_that_ended_within_the_grace_was_one(world: World) -> None:
    """What fell into it is not made up for, and not missed."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.store.steer("report", "ann", "maintenance")
    world.pass_time(10 * MINUTE + 30_000)
    world.store.steer("report", "ann", None)
    world.pass_time(5 * MINUTE)
    assert world.missed == []


def test_what_fell_due_while_no_server_was_there_is_told_by_the_first_that_comes(world: World) -> None:
    """One alarm for all of the ticks, with their number; also when the jobs have changed meanwhile."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.pass_time(5 * MINUTE)
    world.stop()
    world.now += 60 * MINUTE
    world.server(job, a_job("newcomer", 1440))
    world.run(job, START + 60 * MINUTE)
    world.pass_time(2 * MINUTE)
    assert world.missed == [("report", 50, 5)]


def test_servers_with_other_jobs_tell_of_a_common_one_once(world: World) -> None:
    """During a deployment two kinds of servers look at the same job."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.server(job, a_job("newcomer", 1440))
    world.pass_time(15 * MINUTE)
    assert world.missed == [("report", 10, 1)]


def test_a_name_held_as_a_lock_is_named(world: World) -> None:
    """A plain lock on a job's name keeps its ticks from starting."""
    job = seen(world, a_job(minutes=10))
    world.server(job)
    world.pass_time(10 * MINUTE)
    referee = Referee(world.store)
    lock = referee.race(referee.bid("report", 20 * MINUTE))
    assert isinstance(lock, Lease)
    world.pass_time(3 * MINUTE)
    assert f"held as a lock by {lock.owner}" in world.told[0].error
    referee.close()


def test_a_look_that_fails_is_made_up_for_by_the_next(world: World) -> None:
    """The store is away for a while: what fell due meanwhile is told when it is back."""
    job = seen(world, a_job(minutes=10))
    referee = world.server(job)
    world.pass_time(8 * MINUTE)
    reading = referee.store.read
    referee.store.read = _unreachable  # type: ignore[method-assign]
    world.pass_time(4 * MINUTE)
    assert world.missed == []
    referee.store.read = reading  # type: ignore[method-assign]
    world.pass_time(2 * MINUTE)
    assert world.missed == [("report", 10, 1)]


def test_a_thousand_jobs_are_looked_at_in_a_trip_or_two(world: World) -> None:
    """However many jobs there are: one server reads once an interval, the others only race."""
    store = Counting(lambda: world.now)
    world.store = store
    jobs = [seen(world, a_job(f"job-{i}", 1)) for i in range(1000)]
    for _ in range(3):
        world.server(*jobs)
    store.calls.clear()
    world.pass_time(15_000)
    assert store.calls == {"take": 3, "read": 1}
    world.pass_time(45_000)
    for job in jobs:
        world.run(job, world.now)
    world.pass_time(45_000)
    store.calls.clear()
    world.pass_time(15_000)
    assert store.calls == {"take": 3, "read": 1, "runs": 1}
    world.pass_time(MINUTE)
    assert len(world.missed) == 1000


class Counting(MemoryStore):
    """Counts trips."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.calls: dict[str, int] = {}

    def take(self, bids: Any, limit: int) -> Any:
        return self._counted("take", bids, limit)

    def read(self, names: Any) -> Any:
        return self._counted("read", names)

    def runs(self, names: Any, since: int) -> Any:
        return self._counted("runs", names, since)

    def _counted(self, verb: str, *arguments: Any) -> Any:
        self.calls[verb] = self.calls.get(verb, 0) + 1
        return getattr(super(), verb)(*arguments)


def _prolonged(entry: Any, ms: int) -> Any:
    from dataclasses import replace

    return replace(entry, until=entry.taken + ms)


def _unreachable(*_: Any) -> Any:
    from tickoff.errors import StoreUnreachable

    raise StoreUnreachable("gone for a while")
