"""The Redis store: each primitive is one script; many requests travel in one pipeline."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha1
from importlib import resources
from typing import Any, cast

import redis
from redis.connection import Connection, ConnectionPool
from redis.exceptions import NoPermissionError, NoScriptError, RedisClusterException, RedisError

from ...errors import StoreUnreachable
from ...model import (
    TOMBSTONE_LIFE,
    WON_FIELDS,
    Answer,
    Bid,
    Ending,
    Entry,
    Hold,
    Note,
    Outcome,
    Run,
    Why,
    won_entry,
)
from ..base import IO_LIMIT, Finding
from ..idle import Idle
from ..wire import bid_values, ending_values, hold_values
from .connect import RedisSource
from .health import examine

_log = logging.getLogger("tickoff")

_FLAGS = ("manual", "open", "paused", "scheduled")
_OUTAGES = (RedisError, RedisClusterException, OSError)

_META, _META_END = "tickoff:{lock:", "}"


class Script:
    """A constant script and its digest."""

    def __init__(self, name: str) -> None:
        folder = resources.files(__package__)
        self.text = "".join(folder.joinpath(f"{part}.lua").read_text("utf-8") for part in ("common", name))
        self.digest = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class RedisStore:
    """Leases on one Redis, a Sentinel's primary, or a Cluster."""

    def __init__(self, source: RedisSource, limit: float = IO_LIMIT) -> None:
        self._source = source
        self._limit = limit
        self._greeted = False
        self._idle = Idle(self._open, self._shut)

    @property
    def address(self) -> str:
        """Where the Redis is, without the password."""
        return self._source.address

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Decide each bid atomically, by the clock of Redis."""
        if self._is_cluster():
            replies = [reply[0] for reply in self._run(_RACE, [_races([bid], 1) for bid in bids])]
        else:
            replies = self._race_together(bids, len(bids))
        return [_race_answer(bid, reply) for bid, reply in zip(bids, replies, strict=True)]

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race until `limit` are won, in one round trip; on a Cluster, for the first `limit` of them."""
        if self._is_cluster():
            decided: list[Answer | None] = [*self.race(bids[:limit])]
        else:
            replies = self._race_together(bids, limit)
            decided = [_race_answer(bid, reply) for bid, reply in zip(bids, replies, strict=False)]
        return decided + [None] * (len(bids) - len(decided))

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong the leases that are still their holder's."""
        requests = [_request(hold.name, _sent(hold_values(hold))) for hold in holds]
        return [_answer(h.name, reply) for h, reply in zip(holds, self._run(_RENEW, requests), strict=True)]

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Record how ticks ended and let go of their leases."""
        names = [ending.hold.name for ending in endings]
        requests = [_request(e.hold.name, _sent(ending_values(e))) for e in endings]
        return [_answer(n, reply) for n, reply in zip(names, self._run(_SETTLE, requests), strict=True)]

    def release(self, name: str, token: str) -> bool:
        """Let go if the token still holds the name; say whether it did."""
        return bool(self._run(_RELEASE, [_request(name, token)])[0])

    def withdraw(self, name: str, token: str) -> bool:
        """Release, and make sure that a race still under way with this token wins nothing."""
        return bool(self._run(_WITHDRAW, [_request(name, token, TOMBSTONE_LIFE, token=token)])[0])

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take the name from whoever holds it, a foreign program too."""
        return _answer(name, self._run(_EVICT, [_request(name, by, why)])[0])

    def steer(self, name: str, by: str, why: str | None) -> Answer:
        """Pause a name for a reason, or resume it (None)."""
        verb = "resume" if why is None else "pause"
        return _answer(name, self._run(_STEER, [_request(name, by, verb, why or "")])[0])

    def read(self, names: Sequence[str]) -> list[Answer]:
        """What is kept of each name; `ok` tells whether it is held right now."""
        replies = self._run(_READ, [_request(name) for name in names])
        return [_answer(name, reply) for name, reply in zip(names, replies, strict=True)]

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, locks of foreign programs included."""
        pattern = _escaped(prefix) + "*"
        with self._reaching():
            ours = list(self.client.scan_iter(match=f"{_META}{pattern}{_META_END}", count=1000))
            locks = list(self.client.scan_iter(match=f"lock:{pattern}", count=1000))
        found = {key.decode()[len(_META) : -len(_META_END)] for key in ours}
        return sorted(found | {key.decode("utf-8", "replace")[len("lock:") :] for key in locks})

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        with self._reaching():
            lines = self.client.execute_command("ZREVRANGE", _keys(name)[2], 0, limit - 1)
        return [_run_of(name, line) for line in lines]

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on."""
        with self._reaching(), self.client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.execute_command("ZRANGEBYSCORE", _keys(name)[2], since, "+inf")
            found = pipeline.execute()
        return [_run_of(name, line) for name, lines in zip(names, found, strict=True) for line in lines]

    def examine(self) -> list[Finding]:
        """What is amiss with this Redis."""
        with self._reaching():
            return examine(self.address, self._source, self.client)

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board for `life` ms; says the time."""
        return int(self._run(_POST, [(1, _board(board), key, text, life)])[0])

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        found = self._run(_NOTES, [(1, _board(board))])[0]
        return sorted(map(_note, found[::2], found[1::2]), key=lambda note: note.key)

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        return bool(self._run(_STRIKE, [(1, _board(board), key)])[0])

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

    def _is_cluster(self) -> bool:
        """Whether a script sees the keys of one name only; connects, where it was not done yet."""
        with self._reaching():
            return isinstance(self.client, redis.RedisCluster)

    def _race_together(self, bids: Sequence[Bid], limit: int) -> list[Any]:
        """All bids in one script, which stops once `limit` are won."""
        replies: list[Any] = self._run(_RACE, [_races(bids, limit)])[0] if bids else []
        return replies

    def _run(self, script: Script, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
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

    def _send(self, script: Script, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        if len(requests) == 1:
            return [self._send_one(script, requests[0])]
        with self.client.pipeline(transaction=False) as pipeline:
            for request in requests:
                pipeline.execute_command("EVALSHA", script.digest, *request)
            replies: list[Any] = pipeline.execute()
            return replies

    def _send_one(self, script: Script, request: tuple[Any, ...]) -> Any:
        if isinstance(self.client, redis.RedisCluster):
            return self.client.execute_command("EVALSHA", script.digest, *request)

        def talk(connection: Connection) -> Any:
            connection.send_command("EVALSHA", script.digest, *request, check_health=False)
            return connection.read_response()

        return self._idle.exchange(talk)

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
        said = " ".join(str(error).split()) or type(error).__name__
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


def _keys(name: str, token: str = "") -> tuple[str, ...]:
    meta = f"{_META}{name}{_META_END}"
    tombstone = (f"{meta}:withdrawn:{token}",) if token else ()
    return (f"lock:{name}", meta, f"{meta}:runs", f"{meta}:let-go", *tombstone)


def _board(board: str) -> str:
    return f"tickoff:{{board:{board}}}"


def _note(key: bytes, kept: bytes) -> Note:
    until, _, text = kept.decode().partition(" ")
    return Note(key.decode(), text, int(until))


def _request(name: str, *values: str | int, token: str = "") -> tuple[Any, ...]:
    """The number of keys, the keys, the values: what EVALSHA takes after the digest."""
    keys = _keys(name, token)
    return (len(keys), *keys, *values)


def _races(bids: Sequence[Bid], limit: int) -> tuple[Any, ...]:
    """The request of the race script: five keys a bid, then how many may be won, then the bids."""
    keys = [key for bid in bids for key in _keys(bid.name, bid.token)]
    return (len(keys), *keys, limit, *(_sent(bid_values(bid)) for bid in bids))


def _sent(values: dict[str, Any]) -> str:
    """A request for a script: what is nothing is left out, and the name, which the keys tell."""
    return json.dumps({field: value for field, value in values.items() if value and field not in _UNSENT})


def _race_answer(bid: Bid, reply: bytes | list[Any]) -> Answer:
    if isinstance(reply, list):
        return replace(_answer(bid.name, [0, *reply[1:]]), why=Why(reply[0].decode()))
    now, taken, *told = map(int, reply.split())
    return Answer(True, won_entry(bid, taken, **dict(zip(WON_FIELDS, told, strict=True))), now)


def _answer(name: str, reply: list[Any]) -> Answer:
    ok, now, stored = reply
    values = json.loads(stored)
    numbers = {field: int(value) for field, value in values.items() if not isinstance(value, str)}
    flags = {flag: bool(values.get(flag)) for flag in _FLAGS}
    return Answer(bool(ok), Entry(name=name, **(values | numbers | flags)), now)


def _run_of(name: str, line: bytes) -> Run:
    values = json.loads(line[16:])
    numbers = {field: int(value) for field, value in values.items() if not isinstance(value, str)}
    told = {"outcome": Outcome(values["outcome"]), "manual": bool(values.get("manual"))}
    return Run(name=name, **(values | numbers | told))


def _escaped(prefix: str) -> str:
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in prefix)


_RACE = Script("race")
_RENEW = Script("renew")
_SETTLE = Script("settle")
_RELEASE = Script("release")
_WITHDRAW = Script("withdraw")
_EVICT = Script("evict")
_STEER = Script("steer")
_READ = Script("read")
_POST = Script("post")
_NOTES = Script("notes")
_STRIKE = Script("strike")

_UNSENT = {"name", "blank"}

_greeted: set[str] = set()
