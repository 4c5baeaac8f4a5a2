"""procrastinate: 30 jobs at once in one process, told of new ones by LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio

from procrastinate import App, PsycopgConnector

from bench.peers import gate
from bench.peers.program import url

CONCURRENCY = 30
_SLICE = 1000
_RESET = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"

app = App(connector=PsycopgConnector(conninfo=url(), max_size=CONCURRENCY + 4))


@app.task
async def noop() -> None:
    """Nothing."""


def fill(count: str) -> None:
    """Defer so many, in tables made anew."""
    asyncio.run(_fill(int(count)))


async def _fill(count: int) -> None:
    async with app.open_async():
        await app.connector.execute_query_async(_RESET)
        await app.schema_manager.apply_schema_async()
        for begin in range(0, count, _SLICE):
            await noop.batch_defer_async(*[{} for _ in range(min(_SLICE, count - begin))])


def work() -> None:
    """One worker, until nothing is left."""
    asyncio.run(_work())


async def _work() -> None:
    async with app.open_async():
        gate.wait()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
