"""`@jobs.once(...)`: a function fired by any other scheduler runs on one server per tick."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from ..durations import Duration, timeout_seconds, ttl_ms
from ..leases.referee import Referee
from ..model import Skipped
from ..names import check_name
from ..schedules.schedule import schedule_of
from ..ticks.once import Plan, plan, run, run_aside, win, win_aside
from ..ticks.tick import Tick
from ..work import is_async, refuse_lazy
from .scheduled import Scheduled

P = ParamSpec("P")
T = TypeVar("T")


class Once(Protocol):
    """The decorator: arguments pass through, and the value comes back on the one server that ran it."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Tick, P], Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | None]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Tick, P], T], /) -> Callable[P, T | None]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | None]]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Callable[P, T | None]: ...


class Onces(Scheduled):
    """Ticks that somebody else fires."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._fired: dict[str, Callable[..., Any]] = {}

    def once(
        self,
        name: str,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str | None = None,
        ttl: Duration = "60s",
        timeout: Duration | None = None,
        attempts: int | None = None,
        recover: Literal["next", "now"] = "next",
    ) -> Once:
        """Let one server per tick run the function and get its value back; the others get None.

        For what another scheduler fires on every server: an APScheduler job, a Celery task's body, a Django
        command's `handle`. A parameter named `tick` is filled in.
        """
        check_name(name)
        made = plan(
            job=name,
            schedule=schedule_of(cron, every, tz),
            ttl=ttl_ms(ttl),
            timeout=timeout_seconds(timeout),
            attempts=attempts,
            recover=recover,
        )
        return functools.partial(self._decorated, made)

    def _function(self, name: str) -> Callable[..., Any] | None:
        return self._fired.get(name) or super()._function(name)

    def _decorated(self, plan: Plan, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as schedulers see it: with its name, and without the tick among its parameters."""
        refuse_lazy(function)
        self._refuse_taken(plan.job, function)
        self._fired[plan.job] = function
        place = _place_of_tick(function)
        decorated = (_async_of if is_async(function) else _sync_of)(self._stage, plan, function, place)
        functools.update_wrapper(decorated, function)
        if place is not None:
            decorated.__signature__ = _without_tick(function)  # type: ignore[attr-defined] # read by inspect
        return decorated

    def _stage(self, plan: Plan) -> tuple[Referee, str]:
        return self._ready(), self._full(plan.job)


Stage = Callable[[Plan], tuple[Referee, str]]


def _sync_of(stage: Stage, plan: Plan, function: Callable[..., Any], place: int | None) -> Callable[..., Any]:
    def once(*args: Any, **named: Any) -> Any:
        referee, name = stage(plan)
        won = win(referee, plan, name)
        if isinstance(won, Skipped):
            return None
        return run(won, lambda tick: _call(function, place, tick, args, named))

    return once


def _async_of(
    stage: Stage, plan: Plan, function: Callable[..., Any], place: int | None
) -> Callable[..., Any]:
    async def once(*args: Any, **named: Any) -> Any:
        referee, name = stage(plan)
        won = await win_aside(referee, plan, name)
        if isinstance(won, Skipped):
            return None
        return await run_aside(won, lambda tick: _call(function, place, tick, args, named))

    return once


_BY_NAME = -1


def _place_of_tick(function: Callable[..., Any]) -> int | None:
    """Where among the positional arguments the tick goes; by name if nowhere, None if it is not wanted."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return None
    for place, parameter in enumerate(parameters):
        if parameter.name == "tick":
            positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            return place if positional else _BY_NAME
    return None


def _call(
    function: Callable[..., Any], place: int | None, tick: Tick, args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    if place is None:
        return function(*args, **named)
    if place == _BY_NAME or len(args) < place:
        return function(*args, **named, tick=tick)
    return function(*args[:place], tick, *args[place:], **named)


def _without_tick(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=[one for one in signature.parameters.values() if one.name != "tick"])
