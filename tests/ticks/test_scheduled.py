"""What the decorators take, what they refuse, and what they make of it. Nothing connects to anything."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tickoff import Tickoff
from tickoff.errors import ConfigError
from tickoff.schedules.schedule import every
from tickoff.ticks.job import Job, place_of


@pytest.fixture
def jobs() -> Tickoff:
    """A Tickoff that was told nothing."""
    return Tickoff("memory://")


def work() -> None:
    """Do nothing."""


def made(jobs: Tickoff, **options: Any) -> Job:
    """The job that these options make."""
    jobs.every("1m", **options)(work)
    return jobs._jobs["work"]


WRONG: list[tuple[str, Any]] = [
    *(("ttl", value) for value in (0, -1, "0s", "soon", None, [], True, "8d", float("nan"))),
    *(("timeout", value) for value in (0, "-1s", "later", [], float("inf"))),
    *(("attempts", value) for value in (0, -1, "3", 1.5, True)),
    *(("recover", value) for value in ("later", "NOW", None, [])),
    *(("catch_up", value) for value in ("all", True, None)),
    *(("jitter", value) for value in (0, "-5s", "some", {})),
    *(("on_outage", value) for value in ("run", None, False)),
    *(("name", value) for value in ("", " a", "a{b}", "a\nb", "n" * 300)),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_option_is_refused_by_its_name(jobs: Tickoff, field: str, value: Any) -> None:
    """By both decorators, when decorating; nothing is left of the job."""
    for decorator in (partial(jobs.every, "1h"), partial(jobs.cron, "0 * * * *")):
        with pytest.raises(ConfigError, match=field):
            decorator(**{field: value})(work)
    assert jobs._jobs == {}


def needs(row: object, tick: object, *, limit: int, most: int = 5) -> None:
    """A function of more than a tick."""


def test_a_function_that_needs_what_nobody_fills_in_is_refused(jobs: Tickoff) -> None:
    """It would fail at every tick; what a decorator or a partial brings along is no matter."""
    said = r"needs 'row', 'limit', but only a parameter named 'tick' is filled in"
    with pytest.raises(ConfigError, match=said):
        jobs.every("1m")(needs)
    with pytest.raises(ConfigError, match=r"needs 'row', 'tick', 'limit', .* named 'lease'"):
        jobs.leader("post")(needs)
    with pytest.raises(ConfigError, match=r"needs 'row', 'tick', 'limit', .* named 'lease'"):
        jobs.run_with_lock("lock", needs)
    assert (jobs._jobs, jobs._posts) == ({}, {})

    @wraps(needs)
    def filled_in(*args: object, **named: object) -> None:
        """Call it with a row."""

    jobs.every("1m")(filled_in)
    jobs.every("1m", name="bound")(partial(needs, None, limit=5))


@pytest.mark.parametrize("tz", ["Mars/Olympus", "", 5, "../etc/passwd"])
def test_an_unknown_zone_is_refused(jobs: Tickoff, tz: Any) -> None:
    """With the field's name."""
    with pytest.raises(ConfigError, match="tz"):
        jobs.cron("0 * * * *", tz=tz)


@pytest.mark.parametrize("line", ["", "* * * *", "61 * * * *", "soon", None, 5, "@never"])
def test_a_bad_cron_line_is_refused(jobs: Tickoff, line: Any) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(ConfigError):
        jobs.cron(line)


@pytest.mark.parametrize("period", [0, "-1s", "often", None, "50ms", "40d"])
def test_a_bad_period_is_refused(jobs: Tickoff, period: Any) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(ConfigError, match="every"):
        jobs.every(period)


def test_jitter_that_leaves_no_time_for_the_tick_is_refused(jobs: Tickoff) -> None:
    """A tick whose delay outlasts the period would never start."""
    with pytest.raises(ConfigError, match="jitter="):
        jobs.every("10s", jitter="10s")(work)
    with pytest.raises(ConfigError, match="jitter="):
        jobs.cron("*/5 * * * *", jitter="5m")(work)
    jobs.cron("*/5 * * * *", jitter="4m")(work)


def test_the_options_arrive_in_the_job(jobs: Tickoff) -> None:
    """None is accepted and ignored."""
    given = made(
        jobs,
        ttl="5s",
        timeout="2s",
        attempts=4,
        recover="now",
        catch_up="latest",
        jitter="3s",
        on_outage="wait",
    )
    assert (given.ttl, given.timeout, given.attempts, given.jitter) == (5000, 2.0, 4, 3000)
    assert given.takeover
    assert given.catch_up
    assert given.patient


def test_the_defaults_start_a_tick_once(jobs: Tickoff) -> None:
    """And a recovered one three times."""
    plain = made(jobs)
    assert (plain.ttl, plain.timeout, plain.attempts, plain.jitter) == (60_000, None, 1, 0)
    assert not (plain.takeover)
    assert not (plain.catch_up)
    assert not (plain.patient)
    assert not (plain.again)
    recovered = made(Tickoff("memory://"), recover="now")
    assert recovered.attempts == 3
    assert recovered.again


def test_the_function_comes_back_unchanged_and_names_the_job(jobs: Tickoff) -> None:
    """With dashes."""

    def import_products() -> int:
        return 7

    assert jobs.cron("@hourly")(import_products) is import_products
    assert list(jobs._jobs) == ["import-products"]
    assert import_products() == 7


def test_two_functions_by_one_name_are_refused(jobs: Tickoff) -> None:
    """Jobs and posts share their names."""
    jobs.every("1m", name="a")(work)
    with pytest.raises(ConfigError, match="name='a'"):
        jobs.leader("a")(other)
    with pytest.raises(ConfigError, match="name='a'"):
        jobs.cron("@daily", name="a")(other)


def other() -> None:
    """Do nothing, elsewhere."""


def test_a_function_that_is_scheduled_twice_needs_two_names(jobs: Tickoff) -> None:
    """Else the second schedule would silently take the place of the first."""
    jobs.every("1m")(work)
    with pytest.raises(ConfigError, match="name='work'"):
        jobs.every("1h")(work)
    jobs.every("1h", name="work-hourly")(work)
    assert len(jobs._jobs) == 2


def test_a_redefined_function_takes_its_own_place(jobs: Tickoff) -> None:
    """As when a cell of a notebook is run again."""

    def define() -> Callable[[], None]:
        def cell() -> None:
            """Do nothing."""

        return cell

    first, second = define(), define()
    jobs.every("1m")(first)
    jobs.every("2m")(second)
    assert jobs._jobs["cell"].work is second
    assert jobs._jobs["cell"].schedule.text == "every 2m"


def test_a_function_without_a_name_needs_one(jobs: Tickoff) -> None:
    """Lambdas, partials and callable objects; with one they are welcome."""
    for nameless in (lambda: None, partial(work), CallableObject()):
        with pytest.raises(ConfigError, match="name="):
            jobs.every("1m")(nameless)
    jobs.every("1m", name="partial")(partial(work))
    jobs.every("1m", name="object")(CallableObject())
    assert jobs._jobs["object"].function.endswith(":CallableObject")
    assert jobs._jobs["partial"].function


class CallableObject:
    """An object that can be called."""

    async def __call__(self, tick: object) -> None:
        """Do nothing."""


def test_a_callable_object_is_seen_for_what_it_is(jobs: Tickoff) -> None:
    """Async, and with a tick."""
    jobs.every("1m", name="object")(CallableObject())
    assert jobs._jobs["object"].asynchronous
    assert jobs._jobs["object"].wants_tick


@pytest.mark.parametrize(
    ("spec", "file"),
    [(None, "/srv/shop_jobs.py"), ("shop_jobs", "x"), ("shop_jobs.__main__", "x")],
)
def test_a_program_and_its_import_mean_the_same_function(
    monkeypatch: pytest.MonkeyPatch, spec: str | None, file: str
) -> None:
    """`python shop_jobs.py` on one server, `tickoff serve --app shop_jobs` on another."""
    main = ModuleType("__main__")
    main.__file__ = file
    main.__spec__ = SimpleNamespace(name=spec) if spec else None  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", main)

    def tidy() -> None:
        """Do nothing."""

    tidy.__module__, tidy.__qualname__ = "shop_jobs", "tidy"
    imported = place_of(tidy)
    tidy.__module__ = "__main__"
    assert place_of(tidy) == imported == "shop_jobs:tidy"


def test_jitter_is_the_same_on_all_servers_and_spread_over_ticks() -> None:
    """By the name and the tick, and by nothing else; within its bounds."""
    one = Job(name="a", schedule=every("1m"), work=work, ttl=1000, jitter=10_000)
    two = Job(name="b", schedule=every("1m"), work=work, ttl=1000, jitter=10_000)
    delays = [one.delay(tick) for tick in range(1000)]
    assert delays == [one.delay(tick) for tick in range(1000)]
    assert delays != [two.delay(tick) for tick in range(1000)]
    assert min(delays) < 500
    assert 9_500 < max(delays) <= 10_000
