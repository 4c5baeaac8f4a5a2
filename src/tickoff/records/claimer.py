"""Claims records ahead of the calls: the next batch while this one is worked, suspects one by one.

A suspect may kill the process that works it. It is claimed when nothing else is in hand, and nothing else
is claimed until its answer is written, so that its crash is nobody else's.
"""

from __future__ import annotations

from ..errors import StoreUnreachable
from ..ground.clocks import elapsed
from ..ground.loops import Loop
from ..names import new_token, owner
from ..outage import Outage
from ..tables.base import Batch, RecordTable
from .appetite import Appetite
from .claim import Claim
from .floor import Floor
from .hand import Hand
from .job import RecordJob
from .renewal import Renewal

_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.02, 1.0, 2.0
"""Pauses while nothing is there to be claimed grow from the first to the longest."""

_NEWS_EVERY = 1.0
"""Seconds between two looks at what others did behind the floor."""

_SUSPECTS_SHARE = 1 / 10
"""Part of the TTL that may go to suspects before others have their turn, and vice versa the whole of it."""

_AFTER_OUTAGE = 1.0


class Claimer:
    """Keeps the hand full, as long as claiming is allowed."""

    def __init__(self, job: RecordJob, table: RecordTable, hand: Hand, renewal: Renewal) -> None:
        self._job = job
        self._table = table
        self._hand = hand
        self._renewal = renewal
        self._loop = Loop(f"tickoff-claim-{job.name}", self.step)
        self._wants_key = job.wants_key
        self._allowed = False
        self._floor = Floor(self._job.ttl)
        self._appetite = Appetite(self._job.at_once)
        self._pause = _FIRST_PAUSE
        self._seen: frozenset[str] = frozenset()
        self._news_at = 0.0
        self._suspects = False
        self._suspects_next = False
        self._suspects_at = self._suspects_until = 0.0
        self._outage = Outage()
        self.idle = False
        """Whether nothing was there at the last try, and nothing is in hand."""
        hand.on_low = self._wake

    def allow(self) -> None:
        """Claim from now on."""
        self._allowed = True
        self._wake()

    def forbid(self) -> None:
        """Claim nothing more, and give back what was not started."""
        self._allowed = False
        self._hand.drop_ready()

    def stop(self) -> None:
        """End the thread."""
        self._loop.stop()

    def step(self, now: float) -> float | None:
        """Claim what there is room for; when to come back, None to be woken when the hand runs low."""
        if not self._allowed:
            return None
        try:
            return self._step(now)
        except StoreUnreachable as error:
            self._outage.met("%s: nothing can be claimed, trying again: %s", self._job.name, error)
            return elapsed() + _AFTER_OUTAGE

    def _step(self, now: float) -> float | None:
        self._look_around(now)
        if self._suspects and not self._suspects_next and now >= self._suspects_at:
            self._turn_to_suspects(now)
        if self._suspects_next:
            return self._suspect(now)
        if not self._room():
            return now + _NEWS_EVERY
        size = self._appetite.measure(self._hand.finished, now)
        self._hand.expect(size)
        batch = self._table.claim(new_token(), owner(), size, self._job.ttl, self._floor.begin(now))
        self._outage.over()
        nothing_left = self._floor.learn(batch, elapsed() - now, now)
        self._take(batch, now)
        if nothing_left and self._suspects:
            self._turn_to_suspects(now)
        return elapsed() if batch.records or self._suspects_next else self._rest(now, nothing_left)

    def _turn_to_suspects(self, now: float) -> None:
        self._suspects_next = True
        self._suspects_until = now + self._job.ttl * _SUSPECTS_SHARE
        self._suspects_at = now + self._job.ttl

    def _room(self) -> bool:
        """Whether the hand runs low, and holds no suspect."""
        alone = any(claim.alone for claim in self._hand.claims())
        return not alone and self._hand.ready < self._hand.size and not self._hand.stuck

    def _suspect(self, now: float) -> float | None:
        """One suspect, once the hand is empty; the hand wakes us when it is."""
        if not self._hand.empty:
            return now + _NEWS_EVERY
        if now >= self._suspects_until:
            self._suspects_next = False
            return now
        batch = self._table.claim_suspect(new_token(), owner(), self._job.ttl)
        self._suspects = self._suspects_next = bool(batch.records)
        self._take(batch, now)
        return now + _NEWS_EVERY if batch.records else now

    def _take(self, batch: Batch, sent: float) -> None:
        """Take the batch in hand, unless claiming was forbidden meanwhile: then it goes back."""
        if not batch.records:
            return
        claim = Claim(batch, sent, self._job.ttl)
        self._pause = _FIRST_PAUSE
        self.idle = False
        if self._wants_key:
            self._name_pass(claim)
        self._hand.add(claim)
        self._renewal.keep(claim)
        if not self._allowed:
            self._hand.drop_ready()

    def _name_pass(self, claim: Claim) -> None:
        """Ask which pass it is, after the claim: rows that were reopened before it are of that one."""
        try:
            claim.pass_name = self._table.pass_name()
        except StoreUnreachable:
            self._hand.add(claim)
            self._hand.lose(claim)  # nothing is called by a wrong key: it goes back
            raise

    def _rest(self, now: float, nothing_left: bool) -> float:
        """Nothing was there: come back later and later."""
        self.idle = nothing_left and self._hand.empty
        pause = max(self._pause, self._floor.rest)
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)
        return now + pause

    def _look_around(self, now: float) -> None:
        """Now and then: rows that became PENDING behind the floor, and suspects."""
        if now < self._news_at:
            return
        news = self._table.news(self._floor.key, self._seen)
        self._seen = news.seen
        self._floor.lower(news.floor)
        self._suspects = self._suspects or news.suspects
        self._news_at = now + _NEWS_EVERY

    def _wake(self) -> None:
        self._loop.wake_by(elapsed())
