"""Who calls the user's function: threads for `def`, tasks on the shared loop for `async def`.

They are as many as the concurrency and live as long as the worker: what is done per record is kept small.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol

from ..ground.clocks import elapsed
from ..ground.crew import Crew
from ..ground.eventloop import EventLoop
from .claim import Call
from .ends import Ends
from .hand import Hand
from .identity import record_keys
from .job import RecordJob

_log = logging.getLogger("tickoff")

_TURN = 0.005
"""Seconds after which calls that never wait let others have the event loop."""


class Callers(Protocol):
    """Whoever takes calls from the hand and makes them."""

    def start(self) -> None:
        """Begin to take calls."""
        ...

    def interrupt(self, call: Call, /) -> bool:
        """End this call if that is possible; False if it is not."""
        ...

    def stop(self) -> None:
        """Cancel what can be cancelled; the hand is closed by now."""
        ...


def callers_of(job: RecordJob, hand: Hand, loop: EventLoop, ends: Ends) -> Callers:
    """Those who fit the job's function."""
    return Tasks(job, hand, loop, ends) if job.is_async else Threads(job, hand, ends)


def _caller_of(job: RecordJob) -> Callable[[Call], Any]:
    """Calls the function: it returns an answer, or something to be awaited."""
    function, argument = job.function, _row if job.per_call is None else _rows

    def call_with_key(call: Call) -> Any:
        return function(argument(call), record_key=record_keys(job, call))

    return call_with_key if job.wants_key else lambda call: function(argument(call))


def _row(call: Call) -> Any:
    return call.records[0].row


def _rows(call: Call) -> Any:
    return [record.row for record in call.records]


class Threads:
    """Threads of ours for a plain function; one that hangs keeps its thread."""

    def __init__(self, job: RecordJob, hand: Hand, ends: Ends) -> None:
        self._job = job
        self._hand = hand
        self._ends = ends
        self._call = _caller_of(job)
        self._crew = Crew(f"records-{job.name}")

    def start(self) -> None:
        """Begin to take calls."""
        for _ in range(self._job.concurrency):
            self._crew.start(self._work)

    def interrupt(self, _call: Call) -> bool:
        """A thread cannot be ended from outside."""
        return False

    def stop(self) -> None:
        """The threads end by themselves, the hand being closed."""
        self._crew.dismiss()

    def _work(self) -> None:
        hand = self._hand
        while (call := hand.wait(elapsed)) is not None:
            self._make(call)

    def _make(self, call: Call) -> None:
        try:
            value = self._call(call)
        except BaseException as error:  # noqa: BLE001 - whatever the user's function raises is its record's fault
            self._ends.error(call, error)
        else:
            self._ends.value(call, value)


class Tasks:
    """Tasks on the shared event loop for an async function."""

    def __init__(self, job: RecordJob, hand: Hand, loop: EventLoop, ends: Ends) -> None:
        self._job = job
        self._hand = hand
        self._shared = loop
        self._ends = ends
        self._call = _caller_of(job)
        self._futures: list[Future[None]] = []
        self._tasks: dict[Call, asyncio.Task[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None
        self._waiting = 0
        hand.on_change = self._wake
        hand.is_awaited = lambda: self._waiting > 0

    def start(self) -> None:
        """Begin to take calls."""
        self._futures = [self._shared.submit(self._work()) for _ in range(self._job.concurrency)]
        for future in self._futures:
            future.add_done_callback(self._report_bug)

    def interrupt(self, call: Call) -> bool:
        """Cancel the task that makes the call, unless it goes on to another one first."""
        return self._soon(self._cancel, call)

    def stop(self) -> None:
        """Cancel them all; what they were at goes back uncharged."""
        for future in self._futures:
            future.cancel()
        self._wake()

    async def _work(self) -> None:
        begun, task = 0.0, _this_task()
        self._loop = asyncio.get_running_loop()
        while not self._hand.closed:
            now = elapsed()
            call = self._hand.take(now) or await self._next()
            if call is None:
                return
            if now - begun >= _TURN:
                begun = now
                await self._let_others(call)
            await self._make(call, task)

    async def _let_others(self, call: Call) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._hand.untake(call)
            raise

    async def _next(self) -> Call | None:
        """The next call, waiting for it; None when there will be none."""
        if self._changed is None:
            self._changed = asyncio.Event()
        self._waiting += 1
        try:
            return await self._awaited(self._changed)
        finally:
            self._waiting -= 1

    async def _awaited(self, changed: asyncio.Event) -> Call | None:
        while not self._hand.closed:
            changed.clear()
            call = self._hand.take(elapsed())
            if call is not None:
                return call
            await changed.wait()
        return None

    async def _make(self, call: Call, task: asyncio.Task[Any]) -> None:
        self._tasks[call] = task
        try:
            value = await self._awaitable(call)
        except asyncio.CancelledError as error:
            self._cancelled(call, task, error)
            return
        except BaseException as error:  # noqa: BLE001 - whatever the user's function raises is its record's fault
            self._ends.error(call, error)
            return
        finally:
            del self._tasks[call]
        if call.overdue and task.cancelling():
            task.uncancel()  # it was cancelled, and answered all the same
        self._ends.value(call, value)

    def _awaitable(self, call: Call) -> Awaitable[Any]:
        awaitable: Awaitable[Any] = self._call(call)
        return awaitable

    def _cancelled(self, call: Call, task: asyncio.Task[Any], error: asyncio.CancelledError) -> None:
        """By us, because it took too long; by the function itself; or from outside: nobody's fault."""
        if not task.cancelling():
            self._ends.error(call, error)
        elif call.overdue and task.uncancel() == 0:
            self._ends.overdue(call)
        else:
            self._hand.untake(call)
            raise error

    def _cancel(self, call: Call) -> None:
        task = self._tasks.get(call)
        if task is not None:
            task.cancel(msg="the call took too long")

    def _report_bug(self, future: Future[None]) -> None:
        """A task of ours ends when it is told to; anything else is a bug and must not go unseen."""
        error = None if future.cancelled() else future.exception()
        if error is not None:
            _log.error("%s: a caller ended by a bug", self._job.name, exc_info=error)

    def _wake(self) -> None:
        if self._waiting:
            self._soon(self._tell)

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _soon(self, what: Callable[..., None], *arguments: Any) -> bool:
        loop = self._loop
        if loop is None:
            return False
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            loop.call_soon_threadsafe(what, *arguments)
            return True
        return False


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("calls are made in tasks of the event loop")
    return task
