"""The keeper renews all leases of a process on a store in one batch; the judge watches their deadlines.

Two threads, because a renewal may hang on a dead store: the judge does no I/O, so no deadline is missed,
and every store has a keeper of its own, so a dead one takes down no other store's leases.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Iterable

from ..errors import StoreUnreachable, TickoffError
from ..ground import forks
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..ground.world import world
from ..model import Answer
from ..outage import Outage
from ..stores.base import IO_LIMIT, LeaseStore
from .knowledge import Knowledge
from .lease import Lease

_log = logging.getLogger("tickoff")

_NO_RENEWAL = "cannot renew %s, trying again until two thirds of the TTL: %s"

_IO_SHARE = 6
"""I/O for renewals ends within this part of the shortest TTL."""

_TOGETHER = 1 / 12
"""Leases due within this fraction of their TTL are renewed along with those due now."""

_RETRY = 1 / 24
"""Fraction of the TTL between two tries to renew while the store is unreachable."""

_WITHDRAW_RETRY = 0.5
_WITHDRAW_FOR = 600.0
_WITHDRAW_TOGETHER = 20


class Watched:
    """Leases by token, weakly: one that its user dropped is no longer kept, and ends by its TTL."""

    def __init__(self) -> None:
        self._leases: dict[str, weakref.ref[Lease]] = {}

    def add(self, leases: Iterable[Lease]) -> None:
        """Watch leases."""
        self._leases.update([(lease.token, weakref.ref(lease)) for lease in leases])

    def discard(self, lease: Lease) -> None:
        """Watch it no longer."""
        self._leases.pop(lease.token, None)

    def clear(self) -> None:
        """Watch nothing."""
        self._leases = {}

    def current(self) -> list[Lease]:
        """Those that are neither over nor dropped."""
        return [lease for lease in self._alive() if not lease.over]

    def pop_lost(self) -> list[Lease]:
        """Those that were lost since the last time."""
        lost = [lease for lease in self._alive() if lease.why_lost]
        for lease in lost:
            self.discard(lease)
        return lost

    def _alive(self) -> list[Lease]:
        """Those that somebody still refers to; the others are forgotten."""
        leases: list[Lease] = []
        for token, reference in list(self._leases.items()):
            lease = reference()
            if lease is None:
                self._leases.pop(token, None)
            else:
                leases.append(lease)
        return leases


class Judge:
    """Tells the work of every lease whose deadline passed. One for the whole process; does no I/O."""

    def __init__(self) -> None:
        self._watched = Watched()
        self._loop = Loop("tickoff-judge", self.step)
        forks.tell(self)

    def watch(self, *leases: Lease) -> None:
        """Judge these leases from now on."""
        self._watched.add(leases)
        self._loop.wake_by(min(lease.tell_at for lease in leases))

    def discard(self, lease: Lease) -> None:
        """Judge it no longer."""
        self._watched.discard(lease)

    def step(self, now: float) -> float | None:
        """Tell those whose time is up; the next deadline."""
        leases = self._watched.current()
        for lease in leases:
            if now >= lease.tell_at:
                lease.expire(now)
        return min((lease.tell_at for lease in leases if not lease.over), default=None)

    def after_fork(self) -> None:
        """A child holds nothing."""
        self._watched.clear()
        self._loop.after_fork()


class Keeper:
    """Renews the leases of one store, and withdraws races that were given up, until it gets through."""

    def __init__(self, store: LeaseStore, knowledge: Knowledge, judge: Judge | None = None) -> None:
        self._store = store
        self._knowledge = knowledge
        self._judge = judge or process_judge()
        self._watched = Watched()
        self._withdrawn: dict[str, tuple[str, float]] = {}
        self._withdraw_at = math.inf
        self._outage = Outage()
        self._lane: tuple[float, LeaseStore] | None = None
        self._loop = Loop("tickoff-keeper", self.step)

    def keep(self, *leases: Lease) -> None:
        """Renew these leases until they are over."""
        if leases:
            self._watched.add(leases)
            self._loop.wake_by(min(lease.renew_at for lease in leases))
            self._judge.watch(*leases)

    def drop(self, lease: Lease) -> None:
        """Renew it no longer."""
        self._watched.discard(lease)
        self._judge.discard(lease)

    def withdraw(self, name: str, token: str) -> None:
        """Take a race back, in the background: whatever becomes of its request, it wins nothing."""
        self._withdrawn[token] = (name, elapsed() + _WITHDRAW_FOR)
        self._withdraw_at = 0.0
        self._loop.wake_by(elapsed())

    def spare(self, token: str) -> None:
        """Withdraw it no longer: its answer came after all, and nothing is left of it."""
        self._withdrawn.pop(token, None)

    def step(self, now: float) -> float | None:
        """Renew what is due and withdraw what is pending; when to come back."""
        self._report_losses()
        leases = self._watched.current()
        if any(lease.renew_at <= now for lease in leases):
            self._renew([lease for lease in leases if lease.renew_at <= now + lease.ttl * _TOGETHER], now)
        if self._withdraw_at <= now:
            self._withdraw_some(now)
        self._report_losses()
        due = [lease.renew_at for lease in leases if not lease.over]
        return min([*due, self._withdraw_at], default=None) if due or self._withdrawn else None

    @property
    def withdrawals(self) -> int:
        """How many races are still to be withdrawn."""
        return len(self._withdrawn)

    def close(self) -> None:
        """Stop the thread and close its connections."""
        self._loop.stop()
        if self._lane is not None:
            self._lane[1].close()
            self._lane = None

    def after_fork(self) -> None:
        """A child holds nothing."""
        self._watched.clear()
        self._withdrawn = {}
        if self._lane is not None:
            self._lane[1].forget_connections()
        self._lane = None
        self._loop.after_fork()

    def _renew(self, leases: list[Lease], now: float) -> None:
        try:
            answers = self._renewed(leases)
        except StoreUnreachable as error:
            names = ", ".join(lease.name for lease in leases[:5])
            self._outage.met(_NO_RENEWAL, names, error)
            later = elapsed()
            for lease in leases:
                lease.renew_at = later + lease.ttl * _RETRY
            return
        self._outage.over("%s answers again", self._store.address)
        for lease, answer in zip(leases, answers, strict=True):
            self._knowledge.learn(answer.entry)
            if answer.ok:
                lease.renewed(answer, now)
                self._judge.watch(lease)
            elif not lease.over:
                taker = answer.entry.owner or "another program"
                taken = answer.entry.live(answer.now)
                lease.lose(f"the store gave it to {taker}" if taken else "the store no longer had it")

    def _renewed(self, leases: list[Lease]) -> list[Answer]:
        """Ask within what the shortest of all TTLs allows: whatever hangs, no other lease is lost meanwhile.

        Without an answer ask once more, for as long as these allow: a connection that idled may have been
        closed, or the network be too slow for the shortest.
        """
        holds = [lease.hold() for lease in leases]
        try:
            return self._bounded(self._watched.current()).renew(holds)
        except StoreUnreachable:
            return self._bounded(leases).renew(holds)

    def _bounded(self, leases: list[Lease]) -> LeaseStore:
        """The store over connections of the keeper's own, with a limit the shortest TTL allows."""
        wanted = min((lease.ttl for lease in leases), default=IO_LIMIT * _IO_SHARE) / _IO_SHARE
        limit = min(IO_LIMIT, 2.0 ** math.floor(math.log2(wanted)))
        if self._lane is None or self._lane[0] != limit:
            if self._lane is not None:
                self._lane[1].close()
            self._lane = (limit, self._store.within(limit))
        return self._lane[1]

    def _withdraw_some(self, now: float) -> None:
        """Withdraw until one does not get through, or it takes too long: renewals must not wait for it."""
        store = self._bounded(self._watched.current())
        for token, (name, until) in list(self._withdrawn.items())[:_WITHDRAW_TOGETHER]:
            if now >= until:
                _log.warning("a race for %s could not be withdrawn; it may hold the name for one TTL", name)
            elif not self._withdraw_one(store, name, token):
                self._withdraw_at = now + _WITHDRAW_RETRY
                return
            self._withdrawn.pop(token, None)
        self._withdraw_at = now if self._withdrawn else math.inf

    def _withdraw_one(self, store: LeaseStore, name: str, token: str) -> bool:
        try:
            store.withdraw(name, token)
        except TickoffError:
            return False
        return True

    def _report_losses(self) -> None:
        """One line for each lease lost: the judge, who does no I/O, leaves that to us."""
        for lease in self._watched.pop_lost():
            about = {"job": lease.name, "fence": lease.fence, "tick": lease.tick}
            _log.error("the lease on %s is lost: %s", lease.name, lease.why_lost, extra=about)


_judges: weakref.WeakValueDictionary[str, Judge] = weakref.WeakValueDictionary()


def process_judge() -> Judge:
    """The judge of this process, made when first needed."""
    here = world().here()
    judge = _judges.get(here)
    if judge is None:
        judge = _judges[here] = Judge()
    return judge
