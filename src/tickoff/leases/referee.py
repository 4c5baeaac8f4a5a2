"""Races on one store: what to ask, what an answer means, and what to do when none comes.

An answer that never arrived is not a "no": the same token races again and finds out. Whoever gives up
on a race withdraws it, so that a late arrival wins nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from ..errors import ConfigError, LeaseLost, StoreUnreachable
from ..ground import forks
from ..ground.aside import Aside
from ..ground.clocks import elapsed
from ..model import Answer, Bid, Ending, Outcome, Skipped, skipped
from ..names import new_token, owner
from ..stores.base import LeaseStore
from ..work import End
from .keeper import Keeper
from .knowledge import Knowledge
from .lease import TELL_AFTER, Lease
from .pursuit import Pursuit, Reply
from .settler import Settler
from .storetime import StoreTime

_log = logging.getLogger("tickoff")


class Referee:
    """The store and what this process needs beside it: knowledge, the keeper, threads for async callers."""

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.knowledge = Knowledge()
        self.keeper = Keeper(store, self.knowledge)
        self.settler = Settler(store, self.knowledge)
        self.time = StoreTime()
        self.aside = Aside()
        forks.tell(self)

    def bid(self, name: str, ttl: int) -> Bid:
        """A bid of this process for a plain lock."""
        return Bid(name=name, token=new_token(), owner=owner(), ttl=ttl, known=self.knowledge.of(name))

    def tick_bid(self, name: str, ttl: int, tick: int, *, attempts: int = 1, takeover: bool = False) -> Bid:
        """A bid of this process for a tick."""
        return Bid(
            name=name,
            token=new_token(),
            owner=owner(),
            ttl=ttl,
            tick=tick,
            attempts=attempts,
            takeover=takeover,
            scheduled=True,
            known=self.knowledge.of(name),
        )

    def manual_bid(self, name: str, ttl: int, asked: int) -> Bid:
        """A bid of this process for a run that somebody asked for at that instant."""
        return replace(self.bid(name, ttl), tick=asked, scheduled=True, manual=True)

    def take(self, bids: Sequence[Bid], limit: int) -> list[Lease | Answer | None]:
        """Race until `limit` are won, in one trip: a lease, a refusal, or None for the undecided."""
        sent = elapsed()
        try:
            try:
                answers = self.store.take(bids, limit)
            except StoreUnreachable:
                answers = self.store.take(bids, limit)
        except BaseException:
            for bid in bids:
                self.keeper.withdraw(bid.name, bid.token)
            raise
        self.learn_time(answers, sent)
        verdicts = [
            self._won(bid, answer, sent) if answer is not None and answer.ok else self._noted(answer)
            for bid, answer in zip(bids, answers, strict=True)
        ]
        self.keeper.keep(*[verdict for verdict in verdicts if isinstance(verdict, Lease)])
        return verdicts

    def race(self, bid: Bid) -> Lease | Skipped:
        """Race, wait for the answer, and keep what was won; interrupted meanwhile, it withdraws the bid."""
        reply = self.send(bid)
        try:
            return self.conclude(bid, reply)
        except BaseException:
            self.keeper.withdraw(bid.name, bid.token)
            raise

    async def race_aside(self, bid: Bid) -> Lease | Skipped:
        """The same beside an event loop; cancelled while it waits, it withdraws the bid."""
        pursuit = Pursuit(self, bid)
        try:
            return self.conclude(bid, await self.aside.start(pursuit.send))
        except ConfigError:
            raise
        except BaseException:
            pursuit.give_up()
            raise

    def send(self, bid: Bid) -> Reply:
        """Ask the store, once more if no answer came; blocks for at most twice the store's I/O limit."""
        sent = elapsed()
        try:
            try:
                return Reply(self.store.race([bid])[0], sent)
            except StoreUnreachable:
                return Reply(self.store.race([bid])[0], sent, repeated=True)
        except ConfigError:  # it never got as far as the store
            raise
        except BaseException:
            self.keeper.withdraw(bid.name, bid.token)
            raise

    def conclude(self, bid: Bid, reply: Reply) -> Lease | Skipped:
        """Turn the answer into a lease that is kept, or into the reason why there is none."""
        if not reply.answer.ok:
            self._noted(reply.answer)
            return skipped(bid.name, reply.answer)
        lease = self._won(bid, reply.answer, reply.sent)
        if lease is None:
            raise StoreUnreachable(
                f"{self.store.address} took {elapsed() - reply.sent:.1f} s to grant {bid.name} for "
                f"{bid.ttl / 1000:g} s: the lease was given back; use a longer ttl or a faster store"
            )
        self.keeper.keep(lease)
        return lease

    def learn_time(self, answers: Sequence[Answer | None], sent: float) -> None:
        """Take in the store's time from an answer to what was sent then."""
        received = elapsed()
        for answer in answers:
            if answer is not None:
                self.time.learn(answer.now, sent, received)
                return

    def _won(self, bid: Bid, answer: Answer, sent: float) -> Lease | None:
        """The lease that was won; None, and withdrawn, when its answer came too late."""
        self.knowledge.hear(bid.name, answer)
        if (elapsed() - sent) * 1000 >= bid.ttl * TELL_AFTER:
            self.keeper.withdraw(bid.name, bid.token)
            return None
        return Lease(bid, answer, sent, self)

    def _noted(self, answer: Answer | None) -> Answer | None:
        if answer is not None:
            self.knowledge.learn(answer.entry)
        return answer

    def renew(self, lease: Lease, ttl: int) -> None:
        """Renew a lease now; raises `LeaseLost` when it is no longer ours."""
        sent, hold = elapsed(), lease.hold(ttl)
        try:
            answer = self.store.renew([hold])[0]
        except StoreUnreachable:
            answer = self.store.renew([hold])[0]
        self.knowledge.learn(answer.entry)
        if not answer.ok:
            lease.lose("the store no longer had it")
            raise LeaseLost(lease.name, "the store no longer had it")
        lease.renewed(answer, sent)
        self.keeper.keep(lease)

    def release(self, lease: Lease) -> bool:
        """Let go, once more if no answer came: a token's release is recognised when repeated."""
        self.keeper.drop(lease)
        try:
            return self.store.release(lease.name, lease.token)
        except StoreUnreachable:
            return self.store.release(lease.name, lease.token)

    def settle(self, lease: Lease, outcome: Outcome, error: str = "", attempts: int = 1) -> bool:
        """Finish a tick with its outcome and let go; False when it was no longer ours."""
        if lease.inherited:
            return False
        self.keeper.drop(lease)
        ending = Ending(hold=lease.hold(), outcome=outcome, error=error, attempts=attempts)
        try:
            answer = self.store.settle([ending])[0]
        except StoreUnreachable:
            answer = self.store.settle([ending])[0]
        self.knowledge.learn(answer.entry)
        lease.settled(ours=answer.ok)
        return answer.ok

    def finish(self, lease: Lease, end: End, attempts: int) -> None:
        """Settle a tick soon, in the background: its work is done, so nobody has to wait for the store."""
        if lease.inherited:
            return
        self.keeper.drop(lease)
        self.settler.settle(lease, end, attempts)

    def leave(self, lease: Lease) -> None:
        """Let go at the end of the work; the work is done, so an outage only delays it."""
        if lease.inherited:
            return
        if lease.lost:  # nothing to be learnt from the store, and nothing worth waiting for
            self.keeper.withdraw(lease.name, lease.token)
            return
        try:
            lease.release()
        except StoreUnreachable as error:
            _log.warning("%s is released as soon as the store answers, or by its TTL: %s", lease.name, error)
            self.keeper.withdraw(lease.name, lease.token)
        except BaseException:  # an interrupt: nobody knows how far the release came
            self.keeper.withdraw(lease.name, lease.token)
            raise

    def close(self) -> None:
        """Stop the threads and close the connections; used again, it opens new ones."""
        self.settler.close()
        self.keeper.close()
        self.aside.close()
        self.store.close()

    def after_fork(self) -> None:
        """A child holds nothing and opens its own connections."""
        self.store.forget_connections()
        self.knowledge.after_fork()
        self.keeper.after_fork()
        self.settler.after_fork()
        self.aside.after_fork()
