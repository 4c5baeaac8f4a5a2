"""dramatiq on Redis: one process, 8 threads (its default), 1,000 messages fetched ahead."""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers import gate
from bench.peers.program import url

dramatiq.set_broker(RedisBroker(url=url()))


@dramatiq.actor
def noop() -> None:
    """Nothing."""


def fill(count: str) -> None:
    """Send so many messages."""
    dramatiq.get_broker().flush_all()
    for _ in range(int(count)):
        noop.send()


gate.wait()
