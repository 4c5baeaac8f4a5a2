"""celery on Redis: one child process, 400 messages fetched ahead, no results, no gossip."""

from __future__ import annotations

from celery import Celery

from bench.peers import gate
from bench.peers.program import url

app = Celery("bench", broker=url())
app.conf.update(
    worker_prefetch_multiplier=400, task_ignore_result=True, broker_connection_retry_on_startup=True
)


@app.task
def noop() -> None:
    """Nothing."""


def fill(count: str) -> None:
    """Send so many messages."""
    app.control.purge()
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(int(count)):
            noop.apply_async(producer=producer)


gate.wait()
