"""A function that runs while this server leads, and on another server once it does not."""

from __future__ import annotations

import logging
import threading

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.crew import Crew
from ..ground.eventloop import EventLoop, Interrupt
from ..ground.loops import Loop
from ..leases.lease import Lease
from ..leases.referee import Referee
from ..outage import Outage
from ..work import caught, caught_async, in_short
from .job import Post

_log = logging.getLogger("tickoff")

_PAUSE = 1.0
"""Seconds before the lead is raced for again after the function ended, or the store did not answer."""

_STEPS_DOWN = "this server steps down"


class Leader:
    """Races for one post, and does its work while it is held."""

    def __init__(self, referee: Referee, post: Post, loop: EventLoop) -> None:
        self._referee = referee
        self._post = post
        self._eventloop = loop
        self._crew = Crew("leader")
        self._lease: Lease | None = None
        self._guard = threading.Lock()
        self._quiet = False
        self._outage = Outage()
        self._loop = Loop("tickoff-leader", self.step)

    def start(self) -> None:
        """Begin to race."""
        self._quiet = False
        self._loop.wake_by(elapsed())

    def quiet(self) -> None:
        """Step down: async work is cancelled, sync work sees that its lease is lost."""
        with self._guard:
            self._quiet = True
            lease = self._lease
        self._loop.stop()
        if lease is not None:
            self._referee.keeper.drop(lease)
            lease.lose(_STEPS_DOWN)

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
            self._outage.met("cannot race for the lead of %s: %s", self._post.name, error)
            return now + _PAUSE
        self._outage.over()
        if isinstance(verdict, Lease):
            self._lead(verdict)
            return None
        return now + self._post.ttl / 3000

    def _lead(self, lease: Lease) -> None:
        with self._guard:
            wanted = not self._quiet
            if wanted:
                self._lease = lease
        if not wanted:  # it was won while this server stopped
            self._referee.leave(lease)
            return
        _log.info("%s: this server leads", lease.name, extra={"job": lease.name, "fence": lease.fence})
        if self._post.asynchronous:
            interrupt = Interrupt()
            lease.on_loss(interrupt.cancel)
            self._eventloop.begin(self._work_async(lease, interrupt))
        else:
            self._crew.start(lambda: self._work(lease))

    def _work(self, lease: Lease) -> None:
        self._ended(lease, caught(lambda: self._call(lease)))

    async def _work_async(self, lease: Lease, interrupt: Interrupt) -> None:
        error = await caught_async(lambda: self._call(lease), interrupt)
        await self._referee.aside.start(self._ended, lease, error)

    def _call(self, lease: Lease) -> object:
        return self._post.work(lease=lease) if self._post.wants_lease else self._post.work()

    def _ended(self, lease: Lease, error: BaseException | None) -> None:
        self._report(lease, error)
        self._let_go(lease)
        with self._guard:
            self._lease = None
            again = not self._quiet
        if again:
            self._loop.wake_by(elapsed() + _PAUSE)

    def _let_go(self, lease: Lease) -> None:
        """Free the name at once when we step down, so that another server leads before our TTL ends."""
        if lease.why_lost != _STEPS_DOWN:
            self._referee.leave(lease)
            return
        try:
            self._referee.release(lease)
        except StoreUnreachable as error:
            _log.warning("the lead of %s ends by its TTL: %s", lease.name, error)

    def _report(self, lease: Lease, error: BaseException | None) -> None:
        about = {"job": lease.name, "fence": lease.fence}
        if lease.why_lost == _STEPS_DOWN:
            _log.info("%s: %s", lease.name, lease.why_lost, extra=about)
        elif lease.why_lost:
            _log.warning("%s: this server leads no more: %s", lease.name, lease.why_lost, extra=about)
        elif error is None:
            _log.info("%s: the work of the leader returned", lease.name, extra=about)
        else:
            said = in_short(error)
            _log.error("%s: the work of the leader failed: %s", lease.name, said, extra=about, exc_info=error)
