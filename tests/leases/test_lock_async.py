"""The same locks beside an event loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from tickoff import Lease, LeaseLost, LockHeld, Ran, Skipped, Tickoff


def test_an_async_lock_works_like_a_sync_one(jobs: Tickoff, name: str) -> None:
    """Held inside, free after, LockHeld for the other."""

    async def main() -> None:
        async with jobs.lock(name) as lease:
            lease.check()
            with pytest.raises(LockHeld):
                async with jobs.lock(name):
                    pytest.fail("the body ran")
        async with jobs.lock(name):
            pass

    asyncio.run(main())


def test_a_blocked_event_loop_does_not_lose_the_lease(jobs: Tickoff, name: str) -> None:
    """A coroutine that blocks its loop for three TTLs still holds the lock."""

    async def main() -> None:
        async with jobs.lock(name, ttl="1s") as lease:
            time.sleep(3)
            lease.check()
            assert not await asyncio.to_thread(jobs.race, name)

    asyncio.run(main())


def test_the_body_is_cancelled_when_the_lease_is_lost(jobs: Tickoff, name: str) -> None:
    """An evicted holder's task is cancelled at its next await, and leaves with LeaseLost."""
    steps: list[str] = []

    async def main() -> None:
        async with jobs.lock(name, ttl="0.6s"):
            jobs.store.evict(name, "ops", "test")
            steps.append("working")
            await asyncio.sleep(10)
            steps.append("not reached")

    began = time.monotonic()
    with pytest.raises(LeaseLost):
        asyncio.run(main())
    assert time.monotonic() - began < 3
    assert steps == ["working"]


def test_the_task_lives_on_after_a_lost_lease(jobs: Tickoff, name: str) -> None:
    """Our cancellation ends the block, not the task: LeaseLost can be handled like any error."""

    async def main() -> str:
        try:
            async with jobs.lock(name, ttl="0.6s"):
                jobs.store.evict(name, "ops", "test")
                await asyncio.sleep(10)
        except LeaseLost:
            await asyncio.sleep(0.01)
            return "went on"
        return "not lost"

    assert asyncio.run(main()) == "went on"


def test_a_cancellation_from_outside_stays_a_cancellation(jobs: Tickoff, name: str) -> None:
    """Who cancels the task gets a cancelled task, and the name is free."""

    async def hold() -> None:
        async with jobs.lock(name):
            await asyncio.sleep(10)

    async def main() -> None:
        task = asyncio.create_task(hold())
        while not await asyncio.to_thread(lambda: jobs.store.read([name])[0].ok):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with jobs.lock(name, wait="2s"):
            pass

    asyncio.run(main())


def test_cancelling_while_queueing_leaves_nothing(jobs: Tickoff, name: str) -> None:
    """A task that gave up its place in the queue never gets the lock."""

    async def queue() -> None:
        async with jobs.lock(name, wait="30s"):
            pytest.fail("the body ran")

    async def main() -> None:
        async with jobs.lock(name):
            tasks = [asyncio.create_task(queue()) for _ in range(5)]
            await asyncio.sleep(0.2)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.2)
        async with jobs.lock(name, wait="5s"):
            pass

    asyncio.run(main())


def test_run_with_lock_awaits_an_async_function(jobs: Tickoff, name: str) -> None:
    """The plain recipe for async functions, with the lease filled in."""

    async def job(lease: Lease) -> int:
        await asyncio.sleep(0)
        return lease.fence

    async def main() -> None:
        ran = await jobs.run_with_lock(name, job)
        assert isinstance(ran, Ran)
        assert ran.value > 0
        async with jobs.lock(name):
            assert isinstance(await jobs.run_with_lock(name, job), Skipped)

    asyncio.run(main())


def test_many_tasks_take_turns(jobs: Tickoff, name: str) -> None:
    """Queueing tasks get the lock one after the other, never two at once."""
    inside, most, done = 0, 0, 0

    async def work() -> None:
        nonlocal inside, most, done
        async with jobs.lock(name, wait="60s"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.002)
            inside -= 1
            done += 1

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(12)))

    asyncio.run(main())
    assert (most, done) == (1, 12)
