"""Locks: `jobs.lock(...)`, `jobs.race(...)`, `jobs.run_with_lock(...)`, each in both colours."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

from ..durations import Duration, ttl_ms, wait_seconds
from ..leases.lease import Lease
from ..leases.lock import Lock
from ..model import Ran, Skipped
from ..work import is_async, refuse_awaitable, refuse_lazy, refuse_parameters, takes
from .core import Core

T = TypeVar("T")


class Locks(Core):
    """Names without a schedule."""

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
        refuse_lazy(job)
        refuse_parameters(job, "lease")
        lock = self.lock(name, ttl=ttl, wait=wait)
        return _run_async(lock, job) if is_async(job) else _run(lock, job)


def _run(lock: Lock, job: Callable[..., T]) -> Ran[T] | Skipped:
    takes_lease = takes(job, "lease")
    verdict = lock.acquire()
    if isinstance(verdict, Skipped):
        return verdict
    with verdict as lease:
        value = job(lease=lease) if takes_lease else job()
        refuse_awaitable(value)
        return Ran(value)


async def _run_async(lock: Lock, job: Callable[..., Coroutine[Any, Any, T]]) -> Ran[T] | Skipped:
    takes_lease = takes(job, "lease")
    verdict = await lock.acquire_aside()
    if isinstance(verdict, Skipped):
        return verdict
    async with verdict as lease:
        return Ran(await (job(lease=lease) if takes_lease else job()))
