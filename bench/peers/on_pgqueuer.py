"""pgqueuer: asyncpg, uvloop, batches of 500 (10 is its default), until the queue is empty."""

from __future__ import annotations

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, Job, PgQueuer, Queries
from pgqueuer.types import QueueExecutionMode

from bench.peers import gate
from bench.peers.program import url

BATCH = 500
_SLICE = 10_000


def fill(count: str) -> None:
    """Enqueue so many, in tables made anew."""
    uvloop.run(_fill(int(count)))


async def _fill(count: int) -> None:
    connection = await asyncpg.connect(url())
    queries = Queries(AsyncpgDriver(connection))
    if await queries.schema_is_installed():
        await queries.uninstall()
    await queries.install()
    for begin in range(0, count, _SLICE):
        size = min(_SLICE, count - begin)
        await queries.enqueue(["noop"] * size, [None] * size, [0] * size)
    await connection.execute("VACUUM ANALYZE pgqueuer")
    await connection.close()


def work() -> None:
    """One worker, until nothing is left."""
    uvloop.run(_work())


async def _work() -> None:
    connection = await asyncpg.connect(url())
    queuer = PgQueuer(AsyncpgDriver(connection))

    @queuer.entrypoint("noop")
    async def noop(_job: Job) -> None:
        """Nothing."""

    gate.wait()
    await queuer.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
