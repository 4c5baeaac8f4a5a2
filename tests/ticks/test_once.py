"""`@jobs.once`: whoever fires it, one server per tick runs the function."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tickoff import LeaseLost, StoreUnreachable, Tickoff, TickoffError
from tickoff.errors import ConfigError
from tickoff.model import Bid, Outcome, Run, Skipped, Why, moment
from tickoff.names import new_token
from tickoff.schedules.schedule import cron, every
from tickoff.stores.memory import MemoryStore
from tickoff.ticks import once as policy
from tickoff.ticks.once import Firing, plan
from tickoff.ticks.starts import TAKEOVERS
from tickoff.ticks.tick import Tick

YEARLY = "0 0 1 1 *"
"""Its tick is months ago, whenever these tests run: every firing is a late one, and for the same tick."""


@pytest.fixture
def memory() -> Iterator[Tickoff]:
    """A Tickoff for what does not depend on the store."""
    made = Tickoff(MemoryStore())
    yield made
    made.close()


def last_run(jobs: Tickoff, name: str) -> Run:
    """The latest line of the history, which an outage or a lost lease may delay."""
    deadline = time.monotonic() + 10
    while not (runs := jobs.store.history(name)):
        assert time.monotonic() < deadline, "nothing was recorded"
        time.sleep(0.01)
    return runs[0]


def test_one_firing_gets_the_value_and_the_others_get_none(jobs: Tickoff, name: str) -> None:
    """Also those that come when the run is long over; the history has one run."""
    ran: list[int] = []

    @jobs.once(name, cron=YEARLY)
    def work(a: int, *, b: int) -> int:
        ran.append(a)
        return a + b

    assert [work(1, b=2), work(3, b=4), work(5, b=6)] == [3, None, None]
    assert ran == [1]
    assert [run.outcome for run in jobs.store.history(name)] == [Outcome.OK]


def test_async_functions_are_served_alike(jobs: Tickoff, name: str) -> None:
    """Awaited, the value or None; and the decorated function is an async one."""

    @jobs.once(name, cron=YEARLY)
    async def work(tick: Tick, a: int) -> int:
        await asyncio.sleep(0)
        assert not tick.lost
        return a

    async def main() -> list[int | None]:
        return list(await asyncio.gather(*(work(7) for _ in range(5))))

    assert inspect.iscoroutinefunction(work)
    assert sorted(asyncio.run(main()), key=str) == [7, None, None, None, None]
    assert [run.outcome for run in jobs.store.history(name)] == [Outcome.OK]


def test_a_firing_while_another_runs_gets_none(jobs: Tickoff, name: str) -> None:
    """It does not wait, and it does not run beside it."""
    begun, go = threading.Event(), threading.Event()

    @jobs.once(name, cron=YEARLY)
    def work() -> str:
        begun.set()
        assert go.wait(30)
        return "ran"

    values: list[str | None] = []
    first = threading.Thread(target=lambda: values.append(work()))
    first.start()
    assert begun.wait(30)
    values.append(work())
    go.set()
    first.join()
    assert values == [None, "ran"]


def test_the_tick_is_filled_in_wherever_it_stands(memory: Tickoff, name: str) -> None:
    """First, in the middle, or by name; schedulers that look at the signature do not see it."""
    seen: list[tuple[Any, ...]] = []

    def first(tick: Tick, a: int) -> None:
        seen.append((tick.job, tick.at, a))

    def middle(a: int, tick: Tick, b: int = 0) -> None:
        seen.append((tick.job, tick.at, a, b))

    def named(a: int, *, tick: Tick) -> None:
        seen.append((tick.job, tick.at, a))

    for number, function in enumerate((first, middle, named)):
        decorated: Any = memory.once(f"{name}-{number}", cron=YEARLY)(function)
        assert "tick" not in inspect.signature(decorated).parameters
        assert decorated.__name__ == function.__name__
        decorated(1)
    at = moment(cron(YEARLY).upto(time.time_ns() // 1_000_000) or 0)
    assert seen == [(f"{name}-0", at, 1), (f"{name}-1", at, 1, 0), (f"{name}-2", at, 1)]


def test_a_method_keeps_its_self(memory: Tickoff, name: str) -> None:
    """Bound, with arguments and the tick."""

    class Command:
        word = "handled"

        @memory.once(name, cron=YEARLY)
        def handle(self, *words: str, tick: Tick, **options: int) -> str:
            assert tick.fence > 0
            return " ".join([self.word, *words, *options])

    handle: Any = Command().handle
    assert handle("a", "b", c=1) == "handled a b c"


def test_a_failure_is_recorded_and_raised_and_not_repeated(jobs: Tickoff, name: str) -> None:
    """The history has the error in a few words; a later firing does not run it again."""

    @jobs.once(name, cron=YEARLY)
    def work() -> None:
        raise ValueError("no\nsuch  row")

    with pytest.raises(ValueError, match=r"no\ssuch"):
        work()
    assert work() is None
    run = last_run(jobs, name)
    assert (run.outcome, run.error) == (Outcome.FAILED, "ValueError: no such row")


def test_an_error_of_signs_that_databases_refuse_is_recorded(jobs: Tickoff, name: str) -> None:
    """NUL, and half a character, as file names have them: one such run would hold up all others."""

    @jobs.once(name, cron=YEARLY)
    def work() -> None:
        raise OSError("no file 'a\0\udcff\x1b[2J'")

    with pytest.raises(OSError, match="no file"):
        work()
    run = last_run(jobs, name)
    assert run.error == r"OSError: no file 'a\x00\udcff\x1b[2J'"
    assert jobs.store.read([name])[0].entry.finished == run.tick


def test_a_failed_tick_is_tried_by_later_firings_while_it_has_attempts(jobs: Tickoff, name: str) -> None:
    """Three attempts, the third succeeds, the fourth firing finds it done."""
    tried: list[int] = []

    @jobs.once(name, cron=YEARLY, attempts=3)
    def work(tick: Tick) -> str:
        tried.append(tick.attempt)
        if len(tried) < 3:
            raise ValueError("not yet")
        return "done"

    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            work()
    assert [work(), work()] == ["done", None]
    assert tried == [1, 2, 3]


def test_takeover_has_three_attempts_unless_told_otherwise(memory: Tickoff, name: str) -> None:
    """Each start of a tick counts, whether it raised or crashed."""

    @memory.once(name, cron=YEARLY, recover="now")
    def work() -> None:
        raise ValueError("broken")

    for _ in range(TAKEOVERS):
        with pytest.raises(ValueError, match="broken"):
            work()
    assert work() is None


@pytest.mark.parametrize(("status", "outcome"), [(0, Outcome.OK), (3, Outcome.FAILED)])
def test_sys_exit_is_an_end_like_any_other(memory: Tickoff, name: str, status: int, outcome: Outcome) -> None:
    """A Django command may leave that way."""

    @memory.once(name, cron=YEARLY)
    def work() -> None:
        raise SystemExit(status)

    with pytest.raises(SystemExit):
        work()
    assert last_run(memory, name).outcome is outcome


def test_async_work_is_cancelled_when_its_time_is_over(jobs: Tickoff, name: str) -> None:
    """The history says timed out, and the caller gets a TimeoutError."""

    @jobs.once(name, cron=YEARLY, timeout="0.2s")
    async def work() -> None:
        await asyncio.sleep(30)

    with pytest.raises(TimeoutError):
        asyncio.run(work())
    assert last_run(jobs, name).outcome is Outcome.TIMED_OUT


def test_a_timeout_of_the_work_s_own_is_a_failure(memory: Tickoff, name: str) -> None:
    """Only ours is called timed out."""

    @memory.once(name, cron=YEARLY, timeout="30s")
    async def work() -> None:
        raise TimeoutError("the provider")

    with pytest.raises(TimeoutError, match="the provider"):
        asyncio.run(work())
    assert last_run(memory, name).outcome is Outcome.FAILED


def test_sync_work_is_told_when_its_time_is_over(jobs: Tickoff, name: str) -> None:
    """It cannot be interrupted, but its tick is lost, nothing is renewed, and the caller is told."""

    @jobs.once(name, cron=YEARLY, ttl="30s", timeout="0.3s")
    def work(tick: Tick) -> None:
        deadline = time.monotonic() + 20
        while not tick.lost:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(LeaseLost, match="longer than its timeout"):
            tick.check()

    with pytest.raises(TimeoutError, match=r"timeout of 0\.3 s"):
        work()
    run = last_run(jobs, name)
    assert (run.outcome, run.error) == (Outcome.TIMED_OUT, "it ran longer than its timeout of 0.3 s")


def test_a_lease_taken_away_is_told_to_sync_work_at_its_end(jobs: Tickoff, name: str) -> None:
    """The value is not handed out as if nothing had happened."""

    @jobs.once(name, cron=YEARLY, ttl="0.6s")
    def work(tick: Tick) -> str:
        jobs.store.evict(name, "ops", "test")
        while not tick.lost:
            time.sleep(0.01)
        return "value"

    with pytest.raises(LeaseLost):
        work()
    deadline = time.monotonic() + 10
    while {run.outcome for run in jobs.store.history(name)} != {Outcome.LOST}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_lease_taken_away_cancels_async_work(jobs: Tickoff, name: str) -> None:
    """At its next await; the caller gets LeaseLost, and its task lives on."""

    @jobs.once(name, cron=YEARLY, ttl="0.6s")
    async def work() -> None:
        jobs.store.evict(name, "ops", "test")
        await asyncio.sleep(30)

    async def main() -> str:
        with pytest.raises(LeaseLost):
            await work()
        await asyncio.sleep(0.01)
        return "went on"

    assert asyncio.run(main()) == "went on"


def test_a_cancelled_task_settles_its_tick(jobs: Tickoff, name: str) -> None:
    """Who cancels gets a cancelled task; the tick is over, and nobody runs it again."""
    begun = asyncio.Event()

    @jobs.once(name, cron=YEARLY)
    async def work() -> None:
        begun.set()
        await asyncio.sleep(30)

    async def main() -> None:
        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await work() is None

    asyncio.run(main())
    run = last_run(jobs, name)
    assert (run.outcome, run.error) == (Outcome.FAILED, "cancelled")


def test_a_coroutine_that_nobody_awaited_is_a_failure(memory: Tickoff, name: str) -> None:
    """It would run without the lease."""

    async def later() -> None: ...

    work = memory.once(name, cron=YEARLY)(lambda: later())
    with pytest.raises(TickoffError, match="returned a coroutine"):
        work()
    assert last_run(memory, name).outcome is Outcome.FAILED


class Failing(MemoryStore):
    """A memory store whose verbs fail as often as they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.outages: dict[str, int] = {}

    def _down(self, verb: str) -> None:
        if self.outages.get(verb, 0) > 0:
            self.outages[verb] -= 1
            raise StoreUnreachable("down")

    def race(self, bids: Any) -> Any:
        self._down("race")
        return super().race(bids)

    def settle(self, endings: Any) -> Any:
        self._down("settle")
        return super().settle(endings)

    def within(self, limit: float) -> Failing:
        return self


def test_an_outage_before_the_race_is_raised(name: str) -> None:
    """It is no lost race: whoever fired it can decide what to do."""
    store = Failing()
    jobs = Tickoff(store)
    work = jobs.once(name, cron=YEARLY)(lambda: "ran")
    store.outages["race"] = 2
    with pytest.raises(StoreUnreachable):
        work()
    assert [work(), work()] == ["ran", None]
    jobs.close()


def test_an_outage_after_the_work_only_delays_its_settling(name: str) -> None:
    """The caller has its value, the store hears of it later, and the tick is never opened again."""
    store = Failing()
    jobs = Tickoff(store)
    work = jobs.once(name, cron=YEARLY, attempts=5, recover="now")(lambda: "ran")
    store.outages["settle"] = 4
    assert work() == "ran"
    assert store.outages["settle"] <= 2
    assert last_run(jobs, name).outcome is Outcome.OK
    assert store.outages["settle"] == 0
    assert work() is None
    jobs.close()


def crash(jobs: Tickoff, name: str, ttl: int) -> None:
    """Win the tick as a server that dies at once."""
    tick = cron(YEARLY).upto(time.time_ns() // 1_000_000) or 0
    bid = Bid(name=name, token=new_token(), owner="dead", ttl=ttl, tick=tick, attempts=3, takeover=True)
    assert jobs.store.race([bid])[0].ok


def test_a_crashed_tick_is_taken_over_by_who_stands_by(jobs: Tickoff, name: str) -> None:
    """As soon as the lease has run out, and not before."""
    work = jobs.once(name, cron=YEARLY, recover="now")(lambda: "taken over")
    crash(jobs, name, 1500)
    began = time.monotonic()
    assert work() == "taken over"
    assert 1.3 < time.monotonic() - began < 1.5 + 2 + 5
    assert [run.outcome for run in jobs.store.history(name)] == [Outcome.OK, Outcome.CRASHED]


def test_a_crashed_tick_is_left_alone_by_default(memory: Tickoff, name: str) -> None:
    """While the lease lasts, and after."""
    work = memory.once(name, cron=YEARLY)(lambda: "ran")
    crash(memory, name, 200)
    began = time.monotonic()
    assert work() is None
    time.sleep(max(0.0, began + 0.3 - time.monotonic()))
    assert work() is None


MINUTELY = plan("job", every("60s"), 60_000, None, None, "next")


def skipped(why: Why, **more: Any) -> Skipped:
    """A refusal by the store."""
    return Skipped(name="job", why=why, **more)


@pytest.mark.parametrize(
    ("wall", "tick"),
    [(120_000, 120), (120_001, 120), (119_000, 120), (118_999, 60), (179_000 - 1, 120), (400_000, 360)],
)
def test_the_tick_is_the_latest_one_and_a_timer_may_fire_a_second_early(wall: int, tick: int) -> None:
    """By the caller's clock, however late it is."""
    assert Firing(MINUTELY, "job", wall, 0.0).tick == tick * 1000


@pytest.mark.parametrize(
    ("wall", "tick"), [(10_000, 10), (10_010, 10), (10_499, 10), (10_600, 11), (10_999, 11), (11_000, 11)]
)
def test_a_tick_a_second_means_the_nearest_one(wall: int, tick: int) -> None:
    """A second early would always be the next one, which the store refuses as too early."""
    secondly = plan("job", every("1s"), 60_000, None, None, "next")
    assert Firing(secondly, "job", wall, 0.0).tick == tick * 1000


@pytest.mark.parametrize("period", [4, 600])
def test_a_store_that_is_behind_is_waited_for_but_not_for_long(period: int) -> None:
    """Half a period, a minute at most; then the error names the skew."""
    patience = min(period / 2, 60)
    firing = Firing(plan("job", every(period), 60_000, None, None, "next"), "job", period * 1000, 100.0)
    soon = skipped(Why.TOO_EARLY, at=moment(int((period - patience + 0.5) * 1000)))
    assert firing.pause(soon, 100.0) == pytest.approx(patience - 0.5, abs=0.01)
    late = skipped(Why.TOO_EARLY, at=moment(int((period - patience - 0.5) * 1000)))
    with pytest.raises(TickoffError, match=rf"fired {patience + 0.5:.1f} s before its tick .* clock ahead"):
        firing.pause(late, 100.0)
    with pytest.raises(TickoffError):
        firing.pause(soon, 102.0)


@pytest.mark.parametrize(
    ("recover", "refusal", "waits"),
    [
        ("now", skipped(Why.HELD, tick=moment(120_000)), True),
        ("now", skipped(Why.HELD, tick=moment(60_000)), False),
        ("now", skipped(Why.DONE), False),
        ("now", skipped(Why.PAUSED), False),
        ("next", skipped(Why.HELD, tick=moment(120_000)), False),
        ("next", skipped(Why.HELD, note=policy.STORE_FORGOT), True),
        ("next", skipped(Why.HELD, note="held by a program other than Tickoff"), False),
    ],
)
def test_only_a_tick_that_may_become_free_is_waited_for(recover: str, refusal: Skipped, waits: bool) -> None:
    """A crashed holder's under takeover, or one that a forgetful store holds back; until the next is due."""
    made = plan("job", every("60s"), 60_000, None, None, recover)
    firing = Firing(made, "job", 130_000, 0.0)
    assert (firing.pause(refusal, 49.0) is not None) is waits
    assert firing.pause(refusal, 51.0) is None


def test_a_store_that_is_a_moment_behind_costs_that_moment(
    memory: Tickoff, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose clock is ahead runs the tick when it has come by the store's clock."""
    while time.time() % 4 < 2.5:
        time.sleep(0.05)
    due = (int(time.time()) // 4 + 1) * 4
    monkeypatch.setattr(policy, "wall", lambda: due * 1000)
    whys: list[Why | None] = []
    race = memory.store.race

    def noting(bids: Any) -> Any:
        answers = race(bids)
        whys.extend(answer.why for answer in answers)
        return answers

    monkeypatch.setattr(memory.store, "race", noting)
    work = memory.once(name, every="4s")(lambda tick: tick.at.timestamp())
    assert work() == due
    assert time.time() >= due
    assert (whys[0], whys[-1]) == (Why.TOO_EARLY, None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cron": "61 * * * *"}, "61"),
        ({"cron": YEARLY, "every": "1h"}, "exactly one"),
        ({}, "exactly one"),
        ({"cron": YEARLY, "tz": "Europe/Atlantis"}, "Atlantis"),
        ({"cron": YEARLY, "ttl": 0}, "ttl=0"),
        ({"cron": YEARLY, "timeout": "0s"}, "timeout='0s' leaves no time"),
        ({"cron": YEARLY, "attempts": 0}, "attempts is out of range"),
        ({"cron": YEARLY, "recover": "maybe"}, "recover='maybe' is unknown; use 'next' or 'now'"),
    ],
)
def test_what_cannot_work_is_refused_when_decorating(
    memory: Tickoff, wrong: dict[str, Any], said: str
) -> None:
    """Before anything is fired, naming the field."""
    with pytest.raises(ConfigError) as refused:
        memory.once("name", **wrong)
    assert said in str(refused.value)


def test_a_bad_name_is_refused_when_decorating(memory: Tickoff) -> None:
    """As it is everywhere."""
    with pytest.raises(ConfigError, match="brace"):
        memory.once("a{b}", cron=YEARLY)


def test_a_name_that_another_function_has_is_refused(memory: Tickoff) -> None:
    """Whoever took it first, and whatever for."""

    def one() -> None: ...

    def other() -> None: ...

    memory.once("fired", cron=YEARLY)(one)
    memory.cron(YEARLY, name="scheduled")(one)
    memory.once("fired", cron=YEARLY)(one)
    for refused in (memory.once("fired", cron=YEARLY), memory.cron(YEARLY, name="fired")):
        with pytest.raises(ConfigError, match="'fired' is"):
            refused(other)
    with pytest.raises(ConfigError, match="'scheduled' is"):
        memory.once("scheduled", cron=YEARLY)(other)
