"""Lock cycles on Redis: by hand, with the locks of redis-py and python-redis-lock, and with Tickoff."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import redis
import redis.asyncio
import redis_lock

from bench.ratios import Contender
from tickoff import Tickoff

COMPARE_AND_DELETE = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"
)

BY_HAND, THEIR_LOCK, OTHER_LOCK, OURS = "by hand", "redis-py Lock", "python-redis-lock", "Tickoff"


@contextmanager
def sync_contenders(url: str) -> Iterator[list[Contender]]:
    """All of them, blocking, each with a client of its own."""
    clients = [redis.Redis.from_url(url) for _ in range(3)]
    jobs = Tickoff(url)
    try:
        yield [
            Contender(BY_HAND, _by_hand(clients[0])),
            Contender(THEIR_LOCK, _their_lock(clients[1])),
            Contender(OTHER_LOCK, _other_lock(clients[2])),
            Contender(OURS, our_lock(jobs)),
        ]
    finally:
        jobs.close()
        for client in clients:
            client.close()


@contextmanager
def async_contenders(url: str) -> Iterator[list[Contender]]:
    """Those that can, in coroutines of one event loop, one cycle after the other."""
    jobs = Tickoff(url)
    with asyncio.Runner() as runner:
        clients = [redis.asyncio.Redis.from_url(url) for _ in range(2)]
        try:
            yield [
                Contender(BY_HAND, _in(runner, _by_hand_async(clients[0]))),
                Contender(THEIR_LOCK, _in(runner, _their_lock_async(clients[1]))),
                Contender(OURS, _in(runner, _our_lock_async(jobs))),
            ]
        finally:
            jobs.close()
            for client in clients:
                runner.run(client.aclose())


def our_lock(jobs: Tickoff) -> Callable[[int], float]:
    """`with jobs.lock(...)`: the public path, keeper and all."""

    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            with jobs.lock("ours", ttl="60s"):
                pass
        return perf_counter() - begun

    return run


def _by_hand(client: redis.Redis) -> Callable[[int], float]:
    digest = client.script_load(COMPARE_AND_DELETE)

    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            token = secrets.token_hex(16)
            _expect(client.set("lock:by-hand", token, nx=True, ex=60))
            _expect(client.evalsha(digest, 1, "lock:by-hand", token))
        return perf_counter() - begun

    return run


def _their_lock(client: redis.Redis) -> Callable[[int], float]:
    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            with client.lock("lock:theirs", timeout=60, blocking=False):
                pass
        return perf_counter() - begun

    return run


def _other_lock(client: redis.Redis) -> Callable[[int], float]:
    """Without its thread for renewal, which it starts and ends with each lock."""

    def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            with redis_lock.Lock(client, "other", expire=60):
                pass
        return perf_counter() - begun

    return run


def _by_hand_async(client: redis.asyncio.Redis) -> Callable[[int], Awaitable[float]]:
    async def run(cycles: int) -> float:
        digest = await client.script_load(COMPARE_AND_DELETE)
        begun = perf_counter()
        for _ in range(cycles):
            token = secrets.token_hex(16)
            _expect(await client.set("lock:by-hand", token, nx=True, ex=60))
            _expect(await client.evalsha(digest, 1, "lock:by-hand", token))
        return perf_counter() - begun

    return run


def _their_lock_async(client: redis.asyncio.Redis) -> Callable[[int], Awaitable[float]]:
    async def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            async with client.lock("lock:theirs", timeout=60, blocking=False):
                pass
        return perf_counter() - begun

    return run


def _our_lock_async(jobs: Tickoff) -> Callable[[int], Awaitable[float]]:
    async def run(cycles: int) -> float:
        begun = perf_counter()
        for _ in range(cycles):
            async with jobs.lock("ours", ttl="60s"):
                pass
        return perf_counter() - begun

    return run


def _in(runner: asyncio.Runner, run: Callable[[int], Awaitable[float]]) -> Callable[[int], float]:
    async def timed(cycles: int) -> float:
        return await run(cycles)

    return lambda cycles: runner.run(timed(cycles))


def _expect(answer: object) -> None:
    if not answer:
        raise RuntimeError("a lock cycle by hand was refused: somebody else uses this Redis")
