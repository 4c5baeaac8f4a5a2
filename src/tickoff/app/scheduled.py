"""`@jobs.cron`, `@jobs.every`, `@jobs.leader`: what to run, and when. Decorating connects to nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, Literal, TypeVar

from ..durations import Duration, seconds, spelled, ttl_ms
from ..errors import ConfigError
from ..ground.clocks import wall
from ..names import check_name
from ..schedules.schedule import Schedule, cron, every, ticks
from ..ticks.job import Job, Post, place_of
from ..ticks.starts import Recover, starts
from ..work import is_async, refuse_lazy, refuse_parameters, takes
from .core import Core

F = TypeVar("F", bound=Callable[..., Any])

CatchUp = Literal["none", "latest"]
OnOutage = Literal["skip", "wait"]

_LOOKED_AT = 50
"""So many ticks are looked at to see how far apart they are."""


class Scheduled(Core):
    """Jobs and posts, by the names they were decorated with."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._jobs: dict[str, Job] = {}
        self._posts: dict[str, Post] = {}
        self._serving = False

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        ttl: Duration = "60s",
        timeout: Duration | None = None,
        attempts: int | None = None,
        recover: Recover = "next",
        catch_up: CatchUp = "none",
        jitter: Duration | None = None,
        on_outage: OnOutage = "skip",
    ) -> Callable[[F], F]:
        """Run the function at each tick of a cron line, on one server of the fleet.

        A parameter named `tick` is filled in with the `Tick`. The function comes back unchanged.
        """
        options = _options(ttl, timeout, attempts, recover, catch_up, jitter, on_outage)
        return self._job(cron(expression, tz), name, options)

    def every(
        self,
        period: Duration,
        *,
        name: str | None = None,
        ttl: Duration = "60s",
        timeout: Duration | None = None,
        attempts: int | None = None,
        recover: Recover = "next",
        catch_up: CatchUp = "none",
        jitter: Duration | None = None,
        on_outage: OnOutage = "skip",
    ) -> Callable[[F], F]:
        """Run the function once a period, on one server of the fleet; all of them count from the epoch."""
        options = _options(ttl, timeout, attempts, recover, catch_up, jitter, on_outage)
        return self._job(every(period), name, options)

    def leader(self, name: str, *, ttl: Duration = "30s") -> Callable[[F], F]:
        """Run the function for as long as this server leads; another one takes over when it dies.

        Async work is cancelled when the lead is lost. Sync work takes a parameter named `lease` and asks
        `lease.check()`, or `lease.lost`, between its steps.
        """
        check_name(name)
        length = ttl_ms(ttl)

        def decorate(work: F) -> F:
            refuse_lazy(work)
            refuse_parameters(work, "lease")
            self._refuse_late(name)
            self._refuse_taken(name, work)
            self._posts[name] = Post(
                name=name,
                work=work,
                ttl=length,
                asynchronous=is_async(work),
                wants_lease=takes(work, "lease"),
            )
            return work

        return decorate

    def _job(self, schedule: Schedule, name: str | None, options: dict[str, Any]) -> Callable[[F], F]:
        if name is not None:
            check_name(name)
        _refuse_long_jitter(schedule, options["jitter"])

        def decorate(work: F) -> F:
            refuse_lazy(work)
            refuse_parameters(work, "tick")
            called = name or name_of(work)
            self._refuse_late(called)
            self._refuse_taken(called, work)
            self._refuse_second_schedule(called, work, schedule)
            self._jobs[called] = Job(
                name=called,
                schedule=schedule,
                work=work,
                asynchronous=is_async(work),
                wants_tick=takes(work, "tick"),
                **options,
            )
            return work

        return decorate

    def _refuse_taken(self, name: str, work: Callable[..., Any]) -> None:
        """A function that was defined anew takes its own place; any other by the same name is a mistake."""
        former = self._function(name)
        if former is None:
            return
        there, new = place_of(former), place_of(work)
        if there != new:
            raise ConfigError(f"name={name!r} is {there} already; give {new} another one: name='…'")

    def _refuse_second_schedule(self, name: str, work: Callable[..., Any], schedule: Schedule) -> None:
        """The same function once more: the second schedule would silently take the place of the first."""
        former = self._jobs.get(name)
        if former is not None and former.work is work and former.schedule != schedule:
            raise ConfigError(
                f"name={name!r} is scheduled {former.schedule.text!r} already; "
                f"give {schedule.text!r} a name of its own: name='…'"
            )

    def _refuse_late(self, name: str) -> None:
        if self._serving:
            raise ConfigError(
                f"name={name!r} comes too late: this Tickoff is serving, and runs what it had at its start; "
                "import the module with this function before"
            )

    def _function(self, name: str) -> Callable[..., Any] | None:
        """The function that has this name."""
        taken = self._jobs.get(name) or self._posts.get(name)
        return taken.work if taken else None

    def _full_jobs(self, only: str | None = None) -> list[Job]:
        """The jobs by their full names."""
        return [
            replace(job, name=self._full(job.name)) for job in self._jobs.values() if only in (None, job.name)
        ]

    def _full_posts(self, only: str | None = None) -> list[Post]:
        """The posts by their full names."""
        return [
            replace(post, name=self._full(post.name))
            for post in self._posts.values()
            if only in (None, post.name)
        ]


def name_of(work: Callable[..., Any]) -> str:
    """The function's own name, with dashes."""
    name = str(getattr(work, "__name__", "")).replace("_", "-").strip("-")
    if not name or "<" in name:
        raise ConfigError(f"{work!r} has no name of its own; give it one: name='import-products'")
    check_name(name)
    return name


def _options(
    ttl: Duration,
    timeout: Duration | None,
    attempts: int | None,
    recover: str,
    catch_up: str,
    jitter: Duration | None,
    on_outage: str,
) -> dict[str, Any]:
    """The options of a job, checked."""
    _one_of(catch_up, "catch_up", ("none", "latest"))
    _one_of(on_outage, "on_outage", ("skip", "wait"))
    may = starts(attempts, recover)
    return {
        "ttl": ttl_ms(ttl),
        "timeout": None if timeout is None else _above_zero(timeout, "timeout"),
        "attempts": may.attempts,
        "takeover": may.takeover,
        "catch_up": catch_up == "latest",
        "jitter": 0 if jitter is None else round(_above_zero(jitter, "jitter") * 1000),
        "patient": on_outage == "wait",
    }


def _refuse_long_jitter(schedule: Schedule, jitter: int) -> None:
    """A tick that is delayed until the next one is due would never start."""
    if not jitter:
        return
    gap = min((b - a for a, b in pairwise(islice(ticks(schedule, wall()), _LOOKED_AT))), default=math.inf)
    if jitter >= gap:
        raise ConfigError(
            f'jitter="{spelled(jitter)}" leaves no time for ticks of {schedule.text!r}, '
            f"which are {spelled(int(gap))} apart; use less"
        )


def _one_of(value: object, field: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{field}={value!r} is unknown; use {' or '.join(map(repr, allowed))}")


def _above_zero(value: Duration, field: str) -> float:
    length = seconds(value, field)
    if length <= 0:
        raise ConfigError(f'{field}={value!r} is not above zero; write "30s", "5m", or leave it out')
    return length
