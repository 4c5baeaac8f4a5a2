"""The lease in the winner's hands: it knows how long it is good, and tells the work when it is not."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from ..durations import Duration, ttl_ms
from ..errors import LeaseLost, StaleFence
from ..ground.clocks import elapsed
from ..ground.forks import pid
from ..model import Answer, Bid, Hold, held, instant, moment

if TYPE_CHECKING:
    import sqlalchemy

    from ..writes import Guardable
    from .referee import Referee

RENEW_AFTER = 1 / 3
"""Fraction of the TTL after which a lease is renewed."""

TELL_AFTER = 2 / 3
"""Fraction of the TTL without renewal after which the work is told that the lease is lost."""

_TOO_LATE = "it could not be renewed in time"
_TOO_LONG = "its work ran longer than its timeout"


class Lease:
    """A name won, until released, lost or expired; renewed in the background for as long as it is referenced.

    Use it as a context manager (`with` or `async with`) to release it at the end; leaving a lost lease
    raises `LeaseLost`, unless the body already raised.
    """

    __slots__ = (
        "__weakref__",
        "_answer",
        "_bid",
        "_limit",
        "_lost",
        "_on_loss",
        "_pid",
        "_referee",
        "_released",
        "_scope",
        "_ttl",
        "deadline",
        "renew_at",
        "tell_at",
    )

    tell_at: float

    def __init__(self, bid: Bid, answer: Answer, sent: float, referee: Referee) -> None:
        self._bid = bid
        self._answer = answer
        self._ttl = bid.ttl
        self._referee = referee
        self._pid = pid()
        self._lost: str = ""
        self._limit = math.inf
        self._released = False
        self._on_loss: deque[Callable[[], None]] = deque()
        self._scope: CancelScope | None = None
        self._good_from(sent)

    @property
    def name(self) -> str:
        """The full name, namespace included."""
        return self._bid.name

    @property
    def tick(self) -> datetime | None:
        """The tick it was won for, None for a plain lock."""
        return instant(self._bid.tick)

    @property
    def since(self) -> datetime | None:
        """The last tick of this name that ended well, None when there is none."""
        return instant(self._answer.entry.since)

    @property
    def attempt(self) -> int:
        """Which start of its tick this is, counted from 1; 0 for a plain lock."""
        return self._answer.entry.attempt

    @property
    def owner(self) -> str:
        """Who holds it: host:pid:nonce of this process."""
        return self._bid.owner

    @property
    def token(self) -> str:
        """The unique token in the store."""
        return self._bid.token

    @property
    def fence(self) -> int:
        """The fencing number: greater than that of every holder before."""
        return self._answer.entry.fence

    @property
    def ttl(self) -> float:
        """Seconds the lease lasts without renewal."""
        return self._ttl / 1000

    @property
    def until(self) -> datetime:
        """When it ends unless renewed, by the store's clock."""
        return moment(self._answer.entry.until)

    @property
    def lost(self) -> bool:
        """Whether it is no longer ours: found out, or not renewed for two thirds of its TTL."""
        return self._why_lost() != ""

    def check(self) -> None:
        """Raise `LeaseLost` unless the lease is still good: call it before what must not happen twice."""
        why = self._why_lost() or ("it was released" if self._released else "")
        if why:
            raise LeaseLost(self.name, why)

    def extend(self, ttl: Duration | None = None) -> datetime:
        """Renew now, to a full TTL or to another one, and return until when; blocks for one round trip."""
        self.check()
        length = self._ttl if ttl is None else ttl_ms(ttl)
        self._referee.renew(self, length)
        return self.until

    def guard(self, db: Guardable) -> None:
        """Make the transaction that is open on `db` one that only the newest holder can commit.

        Raises `StaleFence` once a newer holder has guarded in that database, and `LeaseLost` past the lease.
        """
        from ..writes import guard

        try:
            guard(db, self.name, self.fence, self.deadline - elapsed())
        except StaleFence as stale:
            self._referee.knowledge.stale(self.name, stale.high)
            raise
        self.check()

    @contextmanager
    def transaction(self, engine: sqlalchemy.Engine) -> Iterator[sqlalchemy.Connection]:
        """Begin a guarded transaction; it is committed at the end, unless the lease was lost by then."""
        from ..writes import begun

        with begun(engine) as connection:
            self.guard(connection)
            yield connection
            self.check()

    def release(self) -> bool:
        """Let go; False when it was no longer ours. Safe to repeat."""
        if self.inherited:
            return False
        if self._released:
            return not self._lost
        ours = self._referee.release(self)
        self._released = True
        if not ours:
            self.lose("the store no longer had it")
        return ours

    def settled(self, *, ours: bool) -> None:
        """Take in that its tick was finished, or that it was somebody else's by then."""
        self._released = True
        if not ours:
            self.lose("the store no longer had it")

    def hold(self, ttl: int | None = None) -> Hold:
        """The lease as the store needs it for a renewal."""
        return held(self._answer.entry, ttl, self._referee.knowledge.of(self.name))

    def renewed(self, answer: Answer, sent: float) -> None:
        """Take in the store's word that the lease was prolonged by a request sent then."""
        entry = replace(self._answer.entry, until=answer.entry.until, ttl=answer.entry.ttl)
        self._answer, self._ttl = Answer(True, entry, answer.now), entry.ttl
        self._good_from(sent)

    def limit(self, seconds: float) -> None:
        """Let the work last so long and no longer: sync code cannot be interrupted, but it can be told."""
        self._limit = elapsed() + seconds
        self.tell_at = min(self.tell_at, self._limit)
        self._referee.keeper.keep(self)

    @property
    def overran(self) -> bool:
        """Whether the work lasts, or lasted, longer than its limit."""
        return self._lost == _TOO_LONG

    def expire(self, now: float) -> None:
        """Mark it lost, as nothing can renew it any more; its deadline is over."""
        self.lose(_TOO_LONG if now >= self._limit else _TOO_LATE)

    def lose(self, why: str) -> None:
        """Mark it lost, once and for all, and tell the work; does no I/O."""
        if self._lost:
            return
        self._lost = why
        self._tell()

    def on_loss(self, tell: Callable[[], None]) -> None:
        """Call this, from any thread, when the lease is lost, or now if it is; it must not block."""
        self._on_loss.append(tell)
        if self._lost:
            self._tell()

    def unheard(self) -> None:
        """Tell nobody any more of a loss, the work is over: it and the lease would keep each other alive."""
        self._on_loss.clear()

    def _tell(self) -> None:
        """Tell everybody once, also who asks to be told just while the loss is found out."""
        while True:
            try:
                tell = self._on_loss.popleft()
            except IndexError:
                return
            tell()

    @property
    def inherited(self) -> bool:
        """Whether a fork brought it here: a child holds nothing, least of all its parent's lease."""
        return self._pid != pid()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to keep: released or lost."""
        return self._released or self._lost != ""

    def _good_from(self, sent: float) -> None:
        """Count all deadlines from before the request was sent: the store counts from later on."""
        ttl = self._ttl / 1000
        told = sent + ttl * TELL_AFTER
        self.renew_at = sent + ttl * RENEW_AFTER
        self.tell_at = told if told < self._limit else self._limit
        self.deadline = sent + ttl

    def _why_lost(self) -> str:
        if self.inherited:
            return "it is the parent process's"
        if not self._lost and not self._released and elapsed() >= self.tell_at:
            self.expire(elapsed())
        return self._lost

    @property
    def why_lost(self) -> str:
        """Why it was lost, empty as long as nobody found out."""
        return self._lost

    def __bool__(self) -> Literal[True]:
        return True

    def __repr__(self) -> str:
        state = "released" if self._released else (f"lost: {self._lost}" if self._lost else "held")
        return f"<Lease {self.name} fence={self.fence} {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self._why_lost()
        self._referee.leave(self)
        self._raise_if_lost(lost, error)

    async def __aenter__(self) -> Self:
        self.check()
        self._scope = CancelScope(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self._why_lost()
        cancelled_by_us = self._scope is not None and self._scope.close(error)
        await asyncio.shield(self._referee.aside.start(self._referee.leave, self))
        if cancelled_by_us:
            raise LeaseLost(self.name, lost or self._lost) from error
        self._raise_if_lost(lost, error)

    def _raise_if_lost(self, lost: str, error: BaseException | None) -> None:
        if error is None and (lost or self._lost):
            raise LeaseLost(self.name, lost or self._lost)


class CancelScope:
    """Cancels the task that runs the body when the lease is lost, and knows its own cancellation again."""

    def __init__(self, lease: Lease) -> None:
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task else 0
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._cancelled = False
        lease.on_loss(self._lost)

    def close(self, error: BaseException | None) -> bool:
        """End the scope; True if the body was cancelled by us and by nobody else."""
        self._open = False
        if not self._cancelled or self._task is None:
            return False
        alone = self._task.uncancel() <= self._before
        return alone and isinstance(error, asyncio.CancelledError)

    def _lost(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._open and self._task is not None and not self._task.done():
            self._cancelled = True
            self._task.cancel(msg="the lease was lost")
