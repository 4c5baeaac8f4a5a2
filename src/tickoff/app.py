"""`Tickoff`: the object users make one of per application."""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import forks
from .durations import Duration, ttl_ms, wait_seconds
from .lease import Lease
from .lock import Lock
from .model import Ran, Skipped
from .names import check_namespace, full_name
from .referee import Referee
from .stores import open_store
from .stores.base import LeaseStore

if TYPE_CHECKING:
    import redis
    import sqlalchemy

T = TypeVar("T")

_log = logging.getLogger("tickoff")


class Tickoff:
    """Locks for a fleet, refereed by the Redis or the database it already has.

    Making one connects to nothing and starts no thread; the environment is read at first use
    (`TICKOFF_URL`, `TICKOFF_NAMESPACE`). Without any URL, a SQLite file in the working folder
    coordinates the processes of this machine.
    """

    def __init__(
        self,
        url: str | sqlalchemy.Engine | redis.Redis | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        self._target = url
        self._namespace = namespace
        check_namespace(namespace)
        self._guard = threading.Lock()
        self._made: tuple[Referee, str] | None = None
        if url is not None:
            open_store(url)  # reads the URL and refuses a bad one; connects to nothing
        forks.tell(self)

    def race(self, name: str, *, ttl: Duration = "60s") -> Lease | Skipped:
        """Try once to win a name: a `Lease`, or a falsy `Skipped` that says why not."""
        length = ttl_ms(ttl)
        referee, full = self._named(name)
        return referee.race(referee.bid(full, length))

    def lock(self, name: str, *, ttl: Duration = "60s", wait: Duration | None = None) -> Lock:
        """A lock for `with` and `async with`; raises `LockHeld` when it is not won within `wait`."""
        length, patience = ttl_ms(ttl), wait_seconds(wait)
        full = full_name(check_namespace(self._namespace_now()), name)
        return Lock(lambda: self._ready()[0], full, length, patience)

    @overload
    def run_with_lock(  # type: ignore[overload-overlap] # an async function is a function, too
        self,
        name: str,
        job: Callable[..., Coroutine[Any, Any, T]],
        *,
        ttl: Duration = ...,
        wait: Duration | None = ...,
    ) -> Coroutine[Any, Any, Ran[T] | Skipped]: ...

    @overload
    def run_with_lock(
        self, name: str, job: Callable[..., T], *, ttl: Duration = ..., wait: Duration | None = ...
    ) -> Ran[T] | Skipped: ...

    def run_with_lock(
        self, name: str, job: Callable[..., Any], *, ttl: Duration = "60s", wait: Duration | None = None
    ) -> Any:
        """Run the function if the name is won: `Ran(value)`, or a falsy `Skipped`; await it for an async one.

        A parameter named `lease` is filled in with the lease.
        """
        lock = self.lock(name, ttl=ttl, wait=wait)
        return _run_async(lock, job) if inspect.iscoroutinefunction(job) else _run(lock, job)

    @property
    def store(self) -> LeaseStore:
        """The store that referees, for those who look deeper."""
        return self._ready()[0].store

    def close(self) -> None:
        """Stop the threads and close the connections; leases still held end by their TTL."""
        with self._guard:
            made, self._made = self._made, None
        if made is not None:
            made[0].close()

    def after_fork(self) -> None:
        """Start anew in a child: the lock may be held by a thread that is gone."""
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        where = open_store(self._target).address if self._target is not None else "TICKOFF_URL"
        named = f", namespace={self._namespace!r}" if self._namespace else ""
        return f"Tickoff({where!r}{named})"

    def _named(self, name: str) -> tuple[Referee, str]:
        referee, namespace = self._ready()
        return referee, full_name(namespace, name)

    def _ready(self) -> tuple[Referee, str]:
        with self._guard:
            if self._made is None:
                namespace = check_namespace(self._namespace_now())
                target = self._target if self._target is not None else url_from_environment()
                self._made = (Referee(open_store(target)), namespace)
            return self._made

    def _namespace_now(self) -> str | None:
        return self._namespace if self._namespace is not None else os.environ.get("TICKOFF_NAMESPACE")


def url_from_environment() -> str:
    """`TICKOFF_URL`, or a SQLite file in the working folder, with a warning that it ends at this machine."""
    url = os.environ.get("TICKOFF_URL")
    if url:
        return url
    path = Path.cwd() / "tickoff.db"
    _log.warning("no URL given: %s coordinates this machine only; set TICKOFF_URL", path)
    return f"sqlite:///{path}"


def _run(lock: Lock, job: Callable[..., T]) -> Ran[T] | Skipped:
    verdict = lock.acquire()
    if isinstance(verdict, Skipped):
        return verdict
    with verdict:
        return Ran(job(**_arguments(job, verdict)))


async def _run_async(lock: Lock, job: Callable[..., Coroutine[Any, Any, T]]) -> Ran[T] | Skipped:
    verdict = await lock.acquire_aside()
    if isinstance(verdict, Skipped):
        return verdict
    async with verdict:
        return Ran(await job(**_arguments(job, verdict)))


def _arguments(job: Callable[..., Any], lease: Lease) -> dict[str, Lease]:
    return {"lease": lease} if "lease" in inspect.signature(job).parameters else {}
