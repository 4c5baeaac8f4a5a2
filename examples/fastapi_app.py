"""A FastAPI application on ten servers, eight workers each; its jobs run once.

On every server:

    TICKOFF_URL=redis://localhost:6379/0 uvicorn examples.fastapi_app:app --workers 8
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException

from tickoff import LockHeld, Tick, Tickoff

jobs = Tickoff()


@jobs.cron("0 * * * *", tz="UTC")
async def import_products(tick: Tick) -> None:
    """On one worker of one server, each hour; it runs on the application's own event loop."""
    app.state.imports.append(tick.at)
    await asyncio.sleep(0)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Each worker takes part in the races, from start to stop."""
    async with jobs:
        yield


app = FastAPI(lifespan=lifespan)
app.state.imports = []


@app.get("/imports")
async def imports() -> list[str]:
    """Those that this worker has run."""
    return [at.isoformat() for at in app.state.imports]


@app.post("/reindex")
async def reindex() -> dict[str, int]:
    """A lock, for something that must not run twice at a time."""
    try:
        async with jobs.lock("reindex", ttl="30s") as lease:
            await asyncio.sleep(0.5)
            return {"fence": lease.fence}
    except LockHeld as held:
        raise HTTPException(409, str(held)) from held
