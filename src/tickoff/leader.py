"""A function that runs while this server leads, and on another server once it does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from .clocks import elapsed
from .crew import Crew
from .errors import StoreUnreachable
from .eventloop import EventLoop
from .lease import Lease
from .loops import Loop
from .referee import Referee
from .work import in_short, refuse_awaitable

_log = logging.getLogger("tickoff")

_PAUSE = 1.0
"""Seconds before the lead is raced for again after the function ended, or the store did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What the decorator said: the name to be won, and the work of whoever holds it."""

    name: str
    work: Callable[..., Any]
    ttl: int
    asynchronous: bool
    wants_lease: bool


class Leader:
    """Races for one post, and does its work while it is held."""

    def __init__(self, referee: Referee, post: Post, loop: EventLoop) -> None:
        self._referee = referee
        self._post = post
        self._eventloop = loop
        self._crew = Crew("leader")
        self._lease: Lease | None = None
        self._future: Future[None] | None = None
        self._quiet = False
        self._outage = False
        self._loop = Loop("tickoff-leader", self.step)

    def start(self) -> None:
        """Begin to race."""
        self._quiet = False
        self._loop.wake_by(elapsed())

    def quiet(self) -> None:
        """Step down: async work is cancelled, sync work sees that its lease is lost."""
        self._quiet = True
        self._loop.stop()
        lease = self._lease
        if lease is not None:
            self._referee.keeper.drop(lease)
            lease.lose("this server steps down")
            self._cancel()

    def busy(self) -> bool:
        """Whether the work goes on."""
        return self._lease is not None

    def stop(self) -> None:
        """Leave it to itself: its lease ends by the TTL."""
        self._loop.stop()
        self._crew.dismiss()

    def step(self, now: float) -> float | None:
        """Race, unless we lead; when to race again."""
        if self._lease is not None or self._quiet:
            return None
        try:
            verdict = self._referee.race(self._referee.bid(self._post.name, self._post.ttl))
        except StoreUnreachable as error:
            self._report_outage(error)
            return now + _PAUSE
        self._outage = False
        if isinstance(verdict, Lease):
            self._lead(verdict)
            return None
        return now + self._post.ttl / 3000

    def _lead(self, lease: Lease) -> None:
        self._lease = lease
        _log.info("%s: this server leads", lease.name, extra={"job": lease.name, "fence": lease.fence})
        if self._post.asynchronous:
            self._future = self._eventloop.submit(self._work_async(lease))
            lease.on_loss(self._cancel)
        else:
            self._crew.start(lambda: self._work(lease))

    def _work(self, lease: Lease) -> None:
        error: BaseException | None = None
        try:
            refuse_awaitable(self._call(lease))
        except BaseException as raised:  # noqa: BLE001 - whatever it was, it ends the lead, and is reported
            error = raised
        self._ended(lease, error)

    async def _work_async(self, lease: Lease) -> None:
        error: BaseException | None = None
        try:
            result = self._call(lease)
            if asyncio.iscoroutine(result):
                await result
        except BaseException as raised:  # noqa: BLE001 - whatever it was, it ends the lead, and is reported
            error = raised
        await self._referee.aside.start(self._ended, lease, error)

    def _call(self, lease: Lease) -> object:
        return self._post.work(lease=lease) if self._post.wants_lease else self._post.work()

    def _ended(self, lease: Lease, error: BaseException | None) -> None:
        self._report(lease, error)
        self._referee.leave(lease)
        self._lease, self._future = None, None
        if not self._quiet:
            self._loop.wake_by(elapsed() + _PAUSE)

    def _cancel(self) -> None:
        future = self._future
        if future is not None:
            future.cancel()

    def _report(self, lease: Lease, error: BaseException | None) -> None:
        about = {"job": lease.name, "fence": lease.fence}
        if lease.why_lost:
            _log.warning("%s: this server leads no more: %s", lease.name, lease.why_lost, extra=about)
        elif error is None:
            _log.info("%s: the work of the leader returned", lease.name, extra=about)
        else:
            said = in_short(error)
            _log.error("%s: the work of the leader failed: %s", lease.name, said, extra=about, exc_info=error)

    def _report_outage(self, error: StoreUnreachable) -> None:
        if not self._outage:
            _log.warning("cannot race for the lead of %s: %s", self._post.name, error)
        self._outage = True
