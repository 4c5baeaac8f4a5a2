"""The user's work: how it is called, and how its end is put into the words of the history."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, LeaseLost, TickoffError, printable
from .model import Outcome

if TYPE_CHECKING:
    from .ground.eventloop import Interrupt

_LONGEST_ERROR = 300
_LONGEST_READ = 3000


@dataclass(frozen=True, slots=True)
class End:
    """How a piece of work ended: its outcome, and what went wrong in a few words."""

    outcome: Outcome
    error: str = ""


ENDED_WELL = End(Outcome.OK)


def end_of(error: BaseException | None) -> End:
    """How work ended that returned (None) or raised this."""
    match error:
        case None:
            return ENDED_WELL
        case LeaseLost():
            return End(Outcome.LOST, error.why)
        case SystemExit():
            return exited(error.code)
        case asyncio.CancelledError():
            return End(Outcome.FAILED, "cancelled")
        case KeyboardInterrupt():
            return End(Outcome.FAILED, "interrupted")
        case _:
            return End(Outcome.FAILED, in_short(error))


def exited(status: object) -> End:
    """How work ended that left with this exit status, as `sys.exit` takes it."""
    if status is None or status == 0:
        return ENDED_WELL
    return End(Outcome.FAILED, f"exit status {status}" if isinstance(status, int) else _line(status))


def overran(timeout: float) -> End:
    """How work ended that was not done in time."""
    return End(Outcome.TIMED_OUT, f"it ran longer than its timeout of {timeout:g} s")


def in_short(error: BaseException) -> str:
    """The error in one line: its type, and the beginning of what it says."""
    said = _line(error)
    return _cut(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def refuse_lazy(job: object) -> None:
    """Refuse, before any race, what cannot be called or would only begin after its lease is gone."""
    if not callable(job):
        raise ConfigError(f"a {type(job).__name__} was given as the job; pass the function itself, uncalled")
    if inspect.isgeneratorfunction(job) or inspect.isasyncgenfunction(job):
        raise ConfigError(
            "the job is a generator function, whose body would run after the lease is gone; "
            "pass one that does its work and returns"
        )


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine, as far as can be told before: also for callable objects."""
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - its definition


def takes(function: Callable[..., Any], parameter: str) -> bool:
    """Whether it has a parameter of this name."""
    try:
        return parameter in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def refuse_parameters(function: Callable[..., Any], filled: str) -> None:
    """Refuse, before any race, what needs more than we fill in: it would fail whenever it is called."""
    needed = [repr(name) for name in _needed(function) if name != filled]
    if needed:
        raise ConfigError(
            f"the function needs {', '.join(needed)}, but only a parameter named {filled!r} is filled in; "
            "give it a default, or pass a function that brings it along"
        )


def _needed(function: Callable[..., Any]) -> list[str]:
    """The parameters it cannot be called without; those of what it wraps may be filled in on the way."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return []
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in open_ended]


def refuse_rowless(function: Callable[..., Any], row: str) -> None:
    """Refuse what cannot be called with a row: all of them would be charged for it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return
    filled = {name: "" for name in ("record_key",) if name in signature.parameters}
    try:
        signature.bind(row, **filled)
    except TypeError as error:
        raise ConfigError(
            f"the function cannot be called with {row}: {error}; beside it, only a parameter named "
            "'record_key' is filled in, so give others a default"
        ) from None


def refuse_awaitable(value: object) -> None:
    """A coroutine would run after the lease is gone: the body never runs without it."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TickoffError("the job returned a coroutine instead of running; pass the async function itself")


def caught(call: Callable[[], object]) -> BaseException | None:
    """Call a function, and return what it raised: whatever that was, it ends the work, and is told."""
    try:
        refuse_awaitable(call())
    except BaseException as error:  # noqa: BLE001 - the caller tells of it
        return error
    return None


async def caught_async(call: Callable[[], object], interrupt: Interrupt) -> BaseException | None:
    """The same with an async function, which may be interrupted."""
    try:
        interrupt.begin()
        result = call()
        if asyncio.iscoroutine(result):
            await result
    except BaseException as error:  # noqa: BLE001 - the caller tells of it
        return error
    return None


def _line(said: object) -> str:
    """What it says, in one line that every store takes; it may even fail at saying it."""
    try:
        text = str(said)
    except Exception as error:  # noqa: BLE001 - an error in telling of an error must not keep the work from ending
        return f"(saying what it is raised {type(error).__name__})"
    return _cut(printable(" ".join(text[:_LONGEST_READ].split())))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"
