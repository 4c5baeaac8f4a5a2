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
from .errors import TickoffError
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
        url: str | sqlalchemy.Engine | redis.Redis | LeaseStore | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        self._guard = threading.Lock()
        self._store = None if url is None else open_store(url)
        self._namespace = None if namespace is None else check_namespace(namespace)
        self._referee: Referee | None = None
        forks.tell(self)

    def race(self, name: str, *, ttl: Duration = "60s") -> Lease | Skipped:
        """Try once to win a name: a `Lease`, or a falsy `Skipped` that says why not."""
        full, length = self._full(name), ttl_ms(ttl)
        referee = self._ready()
        return referee.race(referee.bid(full, length))

    def lock(self, name: str, *, ttl: Duration = "60s", wait: Duration | None = None) -> Lock:
        """A lock for `with` and `async with`; raises `LockHeld` when it is not won within `wait`."""
        return Lock(self._ready, self._full(name), ttl_ms(ttl), wait_seconds(wait))

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
        return _run_async(lock, job) if _is_async(job) else _run(lock, job)

    @property
    def store(self) -> LeaseStore:
        """The store that referees, for those who look deeper."""
        return self._ready().store

    def close(self) -> None:
        """Stop the threads and close the connections; leases still held end by their TTL."""
        with self._guard:
            referee, self._referee = self._referee, None
        if referee is not None:
            referee.close()

    def after_fork(self) -> None:
        """Start anew in a child: the lock may be held by a thread that is gone."""
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        where = "TICKOFF_URL" if self._store is None else self._store.address
        named = f", namespace={self._namespace!r}" if self._namespace else ""
        return f"Tickoff({where!r}{named})"

    def _full(self, name: str) -> str:
        if self._namespace is None:
            self._namespace = check_namespace(os.environ.get("TICKOFF_NAMESPACE"))
        return full_name(self._namespace, name)

    def _ready(self) -> Referee:
        if self._referee is not None:
            return self._referee
        with self._guard:
            if self._store is None:
                self._store = open_store(url_from_environment())
            if self._referee is None:
                self._referee = Referee(self._store)
            return self._referee


def url_from_environment() -> str:
    """`TICKOFF_URL`, or a SQLite file in the working folder, with a warning that it ends at this machine."""
    url = os.environ.get("TICKOFF_URL")
    if url:
        return url
    path = Path.cwd() / "tickoff.db"
    _log.warning("no URL given: %s coordinates this machine only; set TICKOFF_URL", path)
    return f"sqlite:///{path}"


def _run(lock: Lock, job: Callable[..., T]) -> Ran[T] | Skipped:
    takes_lease = _takes_lease(job)
    verdict = lock.acquire()
    if isinstance(verdict, Skipped):
        return verdict
    with verdict as lease:
        value = job(lease=lease) if takes_lease else job()
        _refuse_awaitable(value)
        return Ran(value)


async def _run_async(lock: Lock, job: Callable[..., Coroutine[Any, Any, T]]) -> Ran[T] | Skipped:
    takes_lease = _takes_lease(job)
    verdict = await lock.acquire_aside()
    if isinstance(verdict, Skipped):
        return verdict
    async with verdict as lease:
        return Ran(await (job(lease=lease) if takes_lease else job()))


def _is_async(job: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine, as far as can be told before: also for callable objects."""
    return inspect.iscoroutinefunction(job) or inspect.iscoroutinefunction(getattr(job, "__call__", None))  # noqa: B004


def _takes_lease(job: Callable[..., Any]) -> bool:
    try:
        return "lease" in inspect.signature(job).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _refuse_awaitable(value: object) -> None:
    """A coroutine would run after the lock is gone: the body never runs without the lease."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TickoffError("the job returned a coroutine instead of running; pass the async function itself")
