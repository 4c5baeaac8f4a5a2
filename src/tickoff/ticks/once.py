"""A tick fired by somebody else's scheduler: which one a firing means, and that one of the fleet runs it.

All servers fire, each when its own clock says so. Each computes the tick from the schedule, races for it,
and the store decides: by its own clock, and by the marks that outlast the lease.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import LeaseLost, StoreUnreachable, TickoffError
from ..ground.clocks import elapsed, wall
from ..leases.lease import CancelScope, Lease
from ..leases.referee import Referee
from ..model import STORE_FORGOT, Bid, Outcome, Skipped, Why, moment
from ..schedules.schedule import Schedule
from ..work import End, end_of, overran, refuse_awaitable
from .starts import starts
from .tick import Tick

_log = logging.getLogger("tickoff")

T = TypeVar("T")

_FIRED_EARLY = 1000
"""Milliseconds by which a timer may fire before the tick it is for."""

_LONGEST_PATIENCE = 60.0
"""Seconds to wait at most for a store whose clock has not reached the tick."""

_STANDBY_PAUSE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What runs once a tick, and how."""

    job: str
    schedule: Schedule
    ttl: int
    timeout: float | None
    attempts: int
    takeover: bool


def plan(
    job: str, schedule: Schedule, ttl: int, timeout: float | None, attempts: int | None, recover: str
) -> Plan:
    """The plan that the options mean, checked."""
    may = starts(attempts, recover)
    return Plan(
        job=job,
        schedule=schedule,
        ttl=ttl,
        timeout=timeout,
        attempts=may.attempts,
        takeover=may.takeover,
    )


class Firing:
    """One call by a scheduler: the tick it means by this machine's clock, and what is worth waiting for."""

    def __init__(self, plan: Plan, name: str, wall: int, now: float) -> None:
        tick = _meant(plan.schedule, wall)
        if tick is None:
            raise TickoffError(f"{plan.job} was fired before the first tick of {plan.schedule.text!r}")
        following = plan.schedule.after(tick)
        period = (following - tick) / 1000 if following else _LONGEST_PATIENCE
        self.tick = tick
        self._plan = plan
        self._name = name
        self._patient_until = now + min(period / 2, _LONGEST_PATIENCE)
        self._next_due = now + max(0.0, period - (wall - tick) / 1000)

    def bid(self, referee: Referee) -> Bid:
        """The bid for its tick."""
        plan = self._plan
        return referee.tick_bid(
            self._name, plan.ttl, self.tick, attempts=plan.attempts, takeover=plan.takeover
        )

    def pause(self, skipped: Skipped, now: float) -> float | None:
        """Seconds until it is worth racing again; None when somebody else has the tick."""
        if skipped.why is Why.TOO_EARLY:
            return self._patience(skipped, now)
        if not self._stands_by(skipped, now):
            return None
        return _STANDBY_PAUSE * random.uniform(0.5, 1)  # noqa: S311 - spreading out, not secrecy

    def won(self, referee: Referee, lease: Lease) -> Won:
        """The tick in our hands."""
        return Won(referee, self._plan, lease, self.tick)

    def _patience(self, skipped: Skipped, now: float) -> float:
        ahead = (moment(self.tick) - (skipped.at or moment(self.tick))).total_seconds()
        if now + ahead > self._patient_until:
            raise TickoffError(
                f"{self._plan.job} was fired {ahead:.1f} s before its tick by the store's clock: "
                "so far is this machine's clock ahead; let both keep time by NTP"
            )
        return ahead + 0.001

    def _stands_by(self, skipped: Skipped, now: float) -> bool:
        """Wait for a tick that may become free: its holder may crash, or a store that forgot may open."""
        if skipped.why is not Why.HELD or now >= self._next_due:
            return False
        return skipped.note == STORE_FORGOT or (self._plan.takeover and skipped.tick == moment(self.tick))


def _meant(schedule: Schedule, wall: int) -> int | None:
    """The latest tick, or the next one if it is near: no further off than half the time between the two."""
    last, coming = schedule.upto(wall), schedule.after(wall)
    if coming is None or coming - wall > _FIRED_EARLY:
        return last
    return coming if last is None or (coming - wall) * 2 <= coming - last else last


@dataclass(frozen=True, slots=True)
class Won:
    """A tick that was won, until it is settled."""

    referee: Referee
    plan: Plan
    lease: Lease
    at: int

    @property
    def tick(self) -> Tick:
        """What the function is told."""
        return Tick(self.plan.job, self.lease, self.at)

    def settle(self, end: End) -> bool:
        """Tell the store how it ended; False when the tick was lost. An outage only delays it.

        It is never released instead: a tick given back counts as unstarted, and would run again.
        """
        lost = self.lease.lost
        if not lost:
            try:
                return self.referee.settle(self.lease, end.outcome, end.error, self.plan.attempts)
            except StoreUnreachable as error:
                _log.warning("the end of %s is told as soon as the store answers: %s", self.plan.job, error)
        self.referee.finish(self.lease, end, self.plan.attempts)
        return not lost

    def end(self, error: BaseException | None, *, timed_out: bool = False) -> End:
        """How the function's return or raise is to be called."""
        late = timed_out or self.lease.overran
        return overran(self.plan.timeout or 0) if late else end_of(error)

    def close(self, end: End, *, ours: bool, raised: bool) -> None:
        """Log the end, and raise what the caller must know unless the function raised already."""
        about = {"job": self.plan.job, "fence": self.lease.fence, "tick": self.lease.tick}
        if end.outcome is Outcome.OK and ours:
            _log.info("%s ran its tick of %s", self.plan.job, moment(self.at), extra=about)
            return
        _log.warning("%s: %s: %s", self.plan.job, end.outcome, end.error or "lease lost", extra=about)
        if raised:
            return
        if end.outcome is Outcome.TIMED_OUT:
            raise TimeoutError(f"{self.plan.job}: {end.error}")
        raise LeaseLost(self.lease.name, self.lease.why_lost)


def win(referee: Referee, plan: Plan, name: str) -> Won | Skipped:
    """Race for the tick that is due; waits where waiting may help."""
    firing = Firing(plan, name, wall(), elapsed())
    while True:
        verdict = referee.race(firing.bid(referee))
        if isinstance(verdict, Lease):
            return firing.won(referee, verdict)
        pause = firing.pause(verdict, elapsed())
        if pause is None:
            return verdict
        time.sleep(pause)


async def win_aside(referee: Referee, plan: Plan, name: str) -> Won | Skipped:
    """The same beside an event loop."""
    firing = Firing(plan, name, wall(), elapsed())
    while True:
        verdict = await referee.race_aside(firing.bid(referee))
        if isinstance(verdict, Lease):
            return firing.won(referee, verdict)
        pause = firing.pause(verdict, elapsed())
        if pause is None:
            return verdict
        await asyncio.sleep(pause)


def run(won: Won, function: Callable[[Tick], T]) -> T:
    """Run a function for its tick, and settle it with how that ended."""
    if won.plan.timeout is not None:
        won.lease.limit(won.plan.timeout)
    try:
        value = function(won.tick)
        refuse_awaitable(value)
    except BaseException as error:
        end = won.end(error)
        won.close(end, ours=won.settle(end), raised=True)
        raise
    end = won.end(None)
    won.close(end, ours=won.settle(end), raised=False)
    return value


async def run_aside(won: Won, function: Callable[[Tick], Coroutine[Any, Any, T]]) -> T:
    """The same beside an event loop: cancelled when its time or its lease is over."""
    scope, limit = CancelScope(won.lease), asyncio.timeout(won.plan.timeout)
    try:
        async with limit:
            value = await function(won.tick)
    except BaseException as error:
        if scope.close(error):
            await _settle_aside(won, End(Outcome.LOST, won.lease.why_lost), raised=False)
        await _settle_aside(won, won.end(error, timed_out=limit.expired()), raised=True)
        raise
    scope.close(None)
    await _settle_aside(won, won.end(None), raised=False)
    return value


async def _settle_aside(won: Won, end: End, *, raised: bool) -> None:
    """Settle in a thread; once begun, cancelling whoever waits does not stop it."""
    ours = await asyncio.shield(won.referee.aside.start(won.settle, end))
    won.close(end, ours=ours, raised=raised)
