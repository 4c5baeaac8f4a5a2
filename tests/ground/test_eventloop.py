"""The one asyncio loop of a process: whose it is, and how what runs on it is cancelled."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, cast

import pytest

from tickoff.ground.eventloop import EventLoop, Interrupt


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    """A loop that is ended with the test."""
    made = EventLoop()
    yield made
    made.abandon()


async def running() -> asyncio.AbstractEventLoop:
    """The loop this runs on."""
    return asyncio.get_running_loop()


def test_everything_runs_on_one_loop_in_a_thread_of_its_own(loop: EventLoop) -> None:
    """Which starts when it is first needed."""
    names = {thread.name for thread in threading.enumerate()}
    assert "tickoff-asyncio" not in names
    assert loop.submit(running()).result(5) is loop.submit(running()).result(5)


def test_an_adopted_loop_is_used_and_left_running(loop: EventLoop) -> None:
    """Whatever ran on our own before is let be."""
    own = loop.submit(running()).result(5)

    async def main() -> None:
        loop.adopt(asyncio.get_running_loop())
        found = await asyncio.wrap_future(loop.submit(running()))
        assert found is asyncio.get_running_loop()
        loop.abandon()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert own.is_closed()
    assert loop.submit(running()).result(5) is not own


def test_what_is_left_when_our_loop_ends_is_cancelled_and_cleans_up(loop: EventLoop) -> None:
    """Also where that takes another step."""
    begun, cleaned = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    loop.submit(work())
    assert begun.wait(5)
    loop.abandon()
    assert cleaned.wait(5)


def test_work_that_is_interrupted_before_it_began_still_gets_to_its_end(loop: EventLoop) -> None:
    """A cancelled task that never ran would tell nobody that it is over."""
    said: list[str] = []
    interrupt = Interrupt()

    async def work() -> None:
        try:
            interrupt.begin()
            said.append("never")
        except asyncio.CancelledError:
            said.append("cancelled")

    interrupt.cancel()
    loop.submit(work()).result(5)
    assert said == ["cancelled"]


def test_running_work_is_interrupted_from_another_thread(loop: EventLoop) -> None:
    """Where it waits."""
    begun = threading.Event()
    interrupt = Interrupt()

    async def work() -> str:
        try:
            interrupt.begin()
            begun.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "cancelled"
        return "never"

    future = loop.submit(work())
    assert begun.wait(5)
    interrupt.cancel()
    assert future.result(5) == "cancelled"


def test_interrupting_what_is_over_does_nothing(loop: EventLoop) -> None:
    """Not even when its loop is closed."""
    interrupt = Interrupt()

    async def work() -> None:
        interrupt.begin()

    loop.submit(work()).result(5)
    interrupt.cancel()
    loop.abandon()
    interrupt.cancel()


def test_what_begins_together_wakes_the_loop_once(loop: EventLoop) -> None:
    """Each wake-up is a write to a socket, which a rush of jobs would pay a thousand times."""
    busy, go_on, done = threading.Event(), threading.Event(), threading.Semaphore(0)

    async def block() -> None:
        busy.set()
        go_on.wait(10)

    async def work() -> None:
        await asyncio.sleep(0)
        done.release()

    loop.begin(block())
    assert busy.wait(5)
    own = loop._running()
    calls: list[object] = []
    right = own.call_soon_threadsafe

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return right(*arguments)

    own.call_soon_threadsafe = counted  # type: ignore[method-assign]
    for _ in range(100):
        loop.begin(work())
    go_on.set()
    assert all(done.acquire(timeout=5) for _ in range(100))
    assert len(calls) == 1


def test_work_for_a_loop_that_is_closed_is_refused(loop: EventLoop) -> None:
    """And not kept for the next one."""
    closed = asyncio.new_event_loop()
    closed.close()
    loop.adopt(closed)
    said: list[str] = []

    async def work() -> None:
        said.append("ran")

    with pytest.raises(RuntimeError):
        loop.begin(work())
    loop.abandon()
    loop.submit(running()).result(5)
    assert said == []


def test_work_that_waits_while_its_process_forks_is_none_of_the_childs(loop: EventLoop) -> None:
    """It is the parent's; that the child never awaits it is no news for anybody."""
    adopted = asyncio.new_event_loop()  # one that does not run yet
    loop.adopt(adopted)
    work = running()
    loop.begin(cast("Coroutine[Any, Any, None]", work))
    loop.after_fork()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    adopted.close()
