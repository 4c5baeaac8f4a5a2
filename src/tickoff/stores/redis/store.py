"""The Redis store: each primitive is one script; many requests travel in one pipeline."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar, cast

import redis
from redis.connection import Connection, ConnectionPool
from redis.exceptions import NoPermissionError, NoScriptError, RedisClusterException, RedisError
from redis.sentinel import MasterNotFoundError

from ...errors import StoreUnreachable
from ...lending import LATE, Loan
from ...model import TOMBSTONE_LIFE, Answer, Bid, Ending, Hold, Note, Run
from ..base import IO_LIMIT, Finding
from ..idle import Idle
from ..wire import hold_values
from . import scripts
from .connect import ClusterSource, RedisSource
from .health import examine
from .replies import answer_of, answers_of, note_of, race_answers, run_of
from .requests import (
    Request,
    board_of,
    keys_of,
    lock_request,
    name_in,
    parts_of,
    patterns,
    race_request,
    race_requests,
    rate_of,
    read_request,
    request,
    sent,
    settle_request,
)
from .scripts import Script

T = TypeVar("T")

_log = logging.getLogger("tickoff")

_OUTAGES = (RedisError, RedisClusterException, OSError)


class RedisStore:
    """Leases on one Redis, a Sentinel's primary, or a Cluster."""

    def __init__(self, source: RedisSource, limit: float = IO_LIMIT) -> None:
        self._source = source
        self._limit = limit
        self._is_cluster = isinstance(source, ClusterSource)  # there, a script sees the keys of one name only
        self._greeted = False
        self._idle = Idle(self._open, self._shut)

    @property
    def address(self) -> str:
        """Where the Redis is, without the password."""
        return self._source.address

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Decide each bid atomically, by the clock of Redis."""
        if len(bids) == 1 and bids[0].plain:
            return race_answers(bids, self._run(scripts.LOCK, [lock_request(bids[0])])[0])
        return [answer for answer in self.take(bids, len(bids)) if answer is not None]

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race until `limit` are won, in one round trip; on a Cluster, for the first `limit` of them."""
        if self._is_cluster:
            parts: list[Sequence[Bid]] = [[bid] for bid in bids[:limit]]
            wanted = [race_request(part, 1) for part in parts]
        else:
            parts = parts_of(bids)
            wanted = race_requests(bids, limit)
        verdicts: list[Answer | None] = []
        for part, reply in zip(parts, self._run(scripts.RACE, wanted), strict=True):
            decided = race_answers(part, reply)
            verdicts += [*decided, *[None] * (len(part) - len(decided))]
        return verdicts + [None] * (len(bids) - len(verdicts))

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong the leases that are still their holder's."""
        wanted = [request(hold.name, sent(hold_values(hold))) for hold in holds]
        return [
            answer_of(h.name, reply) for h, reply in zip(holds, self._run(scripts.RENEW, wanted), strict=True)
        ]

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Record how ticks ended and let go of their leases."""
        parts = self._parts(endings)
        told = self._run(scripts.SETTLE, [settle_request(part) for part in parts])
        names = [[ending.hold.name for ending in part] for part in parts]
        return [a for part, reply in zip(names, told, strict=True) for a in answers_of(part, reply)]

    def release(self, name: str, token: str) -> bool:
        """Let go if the token still holds the name; say whether it did."""
        return bool(self._run(scripts.RELEASE, [request(name, token)])[0])

    def withdraw(self, name: str, token: str) -> bool:
        """Release, and make sure that a race still under way with this token wins nothing."""
        return bool(self._run(scripts.WITHDRAW, [request(name, token, TOMBSTONE_LIFE, token=token)])[0])

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take the name from whoever holds it, a foreign program too."""
        return answer_of(name, self._run(scripts.EVICT, [request(name, by, why)])[0])

    def steer(self, name: str, by: str, why: str | None) -> Answer:
        """Pause a name for a reason, or resume it (None)."""
        verb = "resume" if why is None else "pause"
        return answer_of(name, self._run(scripts.STEER, [request(name, by, verb, why or "")])[0])

    def read(self, names: Sequence[str]) -> list[Answer]:
        """What is kept of each name; `ok` tells whether it is held right now."""
        parts = self._parts(names)
        told = self._run(scripts.READ, [read_request(part) for part in parts])
        return [a for part, reply in zip(parts, told, strict=True) for a in answers_of(part, reply)]

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, locks of foreign programs included."""
        with self._reaching():
            found = [
                name_in(key)
                for pattern in patterns(prefix)
                for key in self.client.scan_iter(match=pattern, count=1000)
            ]
        return sorted(set(found))

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        with self._reaching():
            lines = self.client.execute_command("ZREVRANGE", keys_of(name)[2], 0, limit - 1)
        return [run_of(name, line) for line in lines]

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on."""
        with self._reaching(), self.client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.execute_command("ZRANGEBYSCORE", keys_of(name)[2], since, "+inf")
            found = pipeline.execute()
        return [run_of(name, line) for name, lines in zip(names, found, strict=True) for line in lines]

    def examine(self) -> list[Finding]:
        """What is amiss with this Redis."""
        with self._reaching():
            return examine(self.address, self._source, self.client)

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board for `life` ms; says the time."""
        return int(self._run(scripts.POST, [(1, board_of(board), key, text, life)])[0])

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        listed = self._run(scripts.NOTES, [(1, board_of(board))])[0]
        return sorted(map(note_of, listed[::2], listed[1::2]), key=lambda note: note.key)

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        return bool(self._run(scripts.STRIKE, [(1, board_of(board), key)])[0])

    def lend(self, name: str, window: int, limit: int, wanted: int) -> Loan:
        """Lend up to `wanted` of the calls that a rate allows in each window."""
        asked = (1, rate_of(name), window, limit, wanted, limit // LATE)
        return Loan(*map(int, self._run(scripts.LEND, [asked])[0]))

    def now(self) -> int:
        """The clock of Redis."""
        with self._reaching():
            return self._source.time(self.client)

    def within(self, limit: float) -> RedisStore:
        """The same Redis over connections of its own."""
        return RedisStore(self._source, limit)

    def migrate(self) -> str:
        """Nothing to do: the keys need no schema."""
        return f"{self.address}: Redis needs no schema"

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent and open new ones."""
        self._idle.abandon()
        self.__dict__.pop("client", None)

    def close(self) -> None:
        """Close the connections."""
        self._idle.close()
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()

    @cached_property
    def client(self) -> redis.Redis | redis.RedisCluster:
        """The client, connected at first use."""
        return self._source.open(self._limit)

    def _parts(self, wanted: Sequence[T]) -> list[Sequence[T]]:
        """What one script may have at a time; on a Cluster, one name."""
        return [[one] for one in wanted] if self._is_cluster else parts_of(wanted)

    def _run(self, script: Script, requests: Sequence[Request]) -> list[Any]:
        """Run the script for every request in one round trip; a Redis that restarted is told the script anew.

        Sending all of them once more is safe: every script knows its own token again.
        """
        try:
            self._greet()
            try:
                return self._send(script, requests)
            except NoScriptError:
                self._source.teach(self.client, script.text)
                return self._send(script, requests)
        except _OUTAGES as error:
            raise self._unreachable(error) from error

    def _send(self, script: Script, requests: Sequence[Request]) -> list[Any]:
        if self._is_cluster:
            return self._send_to_nodes(script, requests)
        calls = b"".join(map(script.call, requests))

        def talk(connection: Connection) -> list[Any]:
            connection.send_packed_command([calls], check_health=False)
            return [connection.read_response() for _ in requests]

        return self._idle.exchange(talk)

    def _send_to_nodes(self, script: Script, requests: Sequence[Request]) -> list[Any]:
        if len(requests) == 1:
            return [self.client.execute_command("EVALSHA", script.digest, *requests[0])]
        with self.client.pipeline(transaction=False) as pipeline:
            for request in requests:
                pipeline.execute_command("EVALSHA", script.digest, *request)
            replies: list[Any] = pipeline.execute()
            return replies

    def _open(self) -> Connection:
        return self._pool.get_connection()

    def _shut(self, connection: Connection) -> None:
        connection.disconnect()
        self._pool.release(connection)

    @property
    def _pool(self) -> ConnectionPool:
        return cast("redis.Redis", self.client).connection_pool

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except _OUTAGES as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> StoreUnreachable:
        told = str(error).partition(" : ")[0] if isinstance(error, MasterNotFoundError) else str(error)
        said = " ".join(told.split()) or type(error).__name__
        return StoreUnreachable(f"{self.address} did not answer: {said}")

    def _greet(self) -> None:
        """Once per process: warn of a Redis that would throw locks away when memory runs short."""
        if self._greeted or self.address in _greeted:
            return
        self._greeted = True
        _greeted.add(self.address)
        try:
            policy = self._source.eviction(self.client)
        except NoPermissionError:
            _log.info("%s does not let us see whether it evicts keys (no permission for INFO)", self.address)
            return
        if policy is not None:
            _log.warning(
                "%s evicts keys when its memory is full (maxmemory-policy %s), locks among them; "
                "use the policy noeviction, or a Redis of its own for Tickoff",
                self.address,
                policy,
            )


_greeted: set[str] = set()
