"""`jobs.serve()`, `with jobs:`, `async with jobs:`: the services of this process, started and ended."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from ..counts import count
from ..durations import Duration, wait_seconds
from ..errors import ConfigError, TickoffError
from ..leases.referee import Referee
from ..operating.watch import Watch
from ..serve import Service, wind_down
from ..ticks.events import Events
from ..ticks.leader import Leader
from ..ticks.presence import Presence
from ..ticks.requests import Requests
from ..ticks.runs import Runs
from ..ticks.scheduler import Ticks
from .each import Each

_log = logging.getLogger("tickoff")

_LAST_WORDS = 5.0
"""Seconds to tell the store how the last ticks ended."""

_LAST_WORDS_IN_A_HURRY = 1.0

_NAMED = 5
"""So many names are told when serving begins."""


_Handler = Callable[[int, FrameType | None], Any] | int | None


def _never() -> bool:
    return False


class Serving(Each):
    """What runs in the background between start and end."""

    def __init__(
        self,
        *arguments: object,
        slots: int = 32,
        grace: Duration = "30s",
        alarm: Duration | None = "60s",
        **options: object,
    ) -> None:
        super().__init__(*arguments, **options)
        self._slots = count(slots, "slots")
        self._grace = wait_seconds(grace, "grace")
        self._alarm = None if alarm is None else wait_seconds(alarm, "alarm")
        self._events = Events()
        self._services: list[Service] = []

    def serve(self, *, only: str | None = None) -> None:
        """Run schedules, leaders and records until SIGTERM or Ctrl-C; blocks.

        The first signal lets what runs end within the grace, the second one ends it now.
        """
        stopping = threading.Event()
        with _signals(stopping) as signals:
            self._start(only)
            _log.info("serving %s, refereed by %s", self._at_work(only), self._ready().store.address)
            while self._services and not stopping.wait(0.5):
                pass
            _log.info("stopping: what runs may end within %g s; a second signal ends it now", self._grace)
            self._end(self._grace, hurry=lambda: signals.count > 1)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(self._grace)

    async def __aenter__(self) -> Self:
        await self._ready().aside.start(self._start, None, asyncio.get_running_loop())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._ready().aside.start(self._end, self._grace))

    def close(self) -> None:
        """Stop serving, stop the threads and close the connections; leases still held end by their TTL."""
        if self._serving:
            self._end(0.0)
        super().close()

    def after_fork(self) -> None:
        """A child serves nothing until it is told to."""
        super().after_fork()
        self._services, self._serving = [], False

    def _start(self, only: str | None = None, loop: asyncio.AbstractEventLoop | None = None) -> None:
        with self._guard:
            if self._serving:
                raise TickoffError("this Tickoff is serving already; one `serve` or `with` at a time")
            self._serving = True
        try:
            if loop is not None:
                self._eventloop.adopt(loop)
            for service in self._assembled(self._ready(), only):
                service.start()
                self._services.append(service)
        except BaseException:
            self._end(0.0)
            raise

    def _assembled(self, referee: Referee, only: str | None) -> list[Service]:
        """Presence first, since it may refuse; and last to go."""
        jobs, posts = self._full_jobs(only), self._full_posts(only)
        workers = self._record_workers(only)
        if not jobs and not posts and not workers:
            raise ConfigError(self._nothing_to_serve(only))
        from importlib.metadata import version  # slow to import, and not needed to decorate

        namespace = self._namespace or ""
        services: list[Service] = [Presence(referee, namespace, version("tickoff"), jobs, posts)]
        if jobs and self._alarm is not None:  # before the ticks: it notes what was decided before them
            services.append(Watch(referee, namespace, jobs, self._events, self._alarm))
        if jobs:
            runs = Runs(referee, self._eventloop, self._events, self._slots)
            services.append(Ticks(referee, jobs, runs, self._events))
            services.append(Requests(referee, namespace, jobs, runs))
        services += [Leader(referee, post, self._eventloop) for post in posts]
        return [*services, *workers]

    def _nothing_to_serve(self, only: str | None) -> str:
        if only is None:
            return (
                "there is nothing to serve; decorate a function with @jobs.cron, @jobs.every, @jobs.leader "
                "or @jobs.each"
            )
        known = ", ".join(sorted(self._names())) or "none"
        return f"only={only!r} is no name of this application; it has: {known}"

    def _names(self) -> list[str]:
        return [*self._jobs, *self._posts, *self.record_names()]

    def _at_work(self, only: str | None) -> str:
        """What is served, for the log; not all of a thousand names."""
        names = [only] if only else sorted(self._names())
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more

    def _end(self, grace: float, hurry: Callable[[], bool] = _never) -> None:
        services, self._services = self._services, []
        try:
            wind_down(services[::-1], grace, hurry)
            self._say_last_words(hurry())
        finally:
            self._eventloop.abandon()
            self._serving = False

    def _say_last_words(self, hurried: bool) -> None:
        referee = self._referee
        limit = _LAST_WORDS_IN_A_HURRY if hurried else _LAST_WORDS
        if referee is not None and not referee.settler.flush(limit):
            _log.warning("the store could not be told how the last ticks ended; their leases end by the TTL")


class _Signals:
    """SIGTERM and SIGINT, counted."""

    def __init__(self, stopping: threading.Event) -> None:
        self.count = 0
        self._stopping = stopping
        self._pid = os.getpid()
        self._former: dict[int, _Handler] = {}

    def listen(self) -> None:
        """Take the place of the handlers that are there."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._former[number] = signal.signal(number, self._received)

    def leave(self) -> None:
        """Put the former handlers back."""
        for number, handler in self._former.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        """Count one; a child that a job forked is no server, and does what it would do without us."""
        if os.getpid() != self._pid:
            self.leave()
            signal.raise_signal(number)
            return
        self.count += 1
        self._stopping.set()


@contextmanager
def _signals(stopping: threading.Event) -> Iterator[_Signals]:
    """Listen while the block runs, and restore what was there; only the main thread may."""
    signals = _Signals(stopping)
    if threading.current_thread() is threading.main_thread():
        signals.listen()
    try:
        yield signals
    finally:
        signals.leave()
