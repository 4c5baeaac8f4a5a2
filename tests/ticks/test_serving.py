"""`serve`, `with jobs`, `async with jobs`: what starts, what ends, and how. In real time, but short."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dev.servers import Server

from tickoff import LeaseLost, Tickoff
from tickoff.errors import ConfigError, TickoffError
from tickoff.leases.lease import Lease
from tickoff.model import Ending, Outcome, Run
from tickoff.ticks.tick import Tick

from ..leases.test_fork import in_child
from ..processes import ROOT


@pytest.fixture
def jobs() -> Iterator[Tickoff]:
    """A Tickoff whose runs are cancelled at once when it ends."""
    made = Tickoff("memory://", grace=0)
    yield made
    made.close()


def run_before(jobs: Tickoff, name: str) -> None:
    """Pretend that the job ran once, long ago."""
    referee = jobs._ready()
    lease = referee.take([referee.tick_bid(name, 60_000, 1000)], 1)[0]
    assert isinstance(lease, Lease)
    jobs.store.settle([Ending(hold=lease.hold(), outcome=Outcome.OK)])


def at_once(jobs: Tickoff, **options: object) -> Callable[[Callable[..., object]], object]:
    """A schedule with one tick, which is due as soon as the server starts."""
    run_before(jobs, "job")
    return jobs.every("31d", name="job", catch_up="latest", **options)  # type: ignore[arg-type]


def eventually(condition: Callable[[], object], limit: float = 10.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False


def last(jobs: Tickoff) -> Run:
    """The run recorded last."""
    return jobs.store.history("job")[0]


def test_with_runs_the_jobs_and_ends_them(jobs: Tickoff) -> None:
    """While the block lasts, and not before or after it."""
    ticks: list[object] = []
    jobs.every("100ms")(lambda_named(ticks))
    with jobs:
        assert eventually(lambda: len(ticks) >= 3)
    count = len(ticks)
    time.sleep(0.3)
    assert len(ticks) == count
    assert len(set(ticks)) == count


def lambda_named(ticks: list[object]) -> Callable[..., None]:
    """A function that takes down its ticks."""

    def job(tick: Tick) -> None:
        ticks.append(tick.at)

    return job


def test_it_may_serve_again_after_it_ended(jobs: Tickoff) -> None:
    """Sync and async."""
    ticks: list[int] = []

    @jobs.every("100ms")
    async def job() -> None:
        ticks.append(1)

    for _ in range(2):
        ticks.clear()
        with jobs:
            assert eventually(lambda: ticks)


def test_all_async_jobs_share_one_loop(jobs: Tickoff) -> None:
    """So they may share a client."""
    loops: dict[str, object] = {}

    @jobs.every("100ms")
    async def one() -> None:
        loops["one"] = asyncio.get_running_loop()

    @jobs.every("100ms")
    async def two() -> None:
        loops["two"] = asyncio.get_running_loop()

    with jobs:
        assert eventually(lambda: len(loops) == 2)
    assert loops["one"] is loops["two"]


def test_async_with_runs_async_jobs_on_the_users_loop(jobs: Tickoff) -> None:
    """And leaves that running, also when a loop of our own was there before."""
    seen: list[object] = []

    @jobs.every("100ms")
    async def job() -> None:
        seen.append(asyncio.get_running_loop())

    async def nothing() -> None: ...

    jobs._eventloop.submit(nothing()).result(5)

    async def main() -> None:
        async with jobs:
            while not seen:
                await asyncio.sleep(0.01)
        assert seen[0] is asyncio.get_running_loop()
        await asyncio.sleep(0.05)

    asyncio.run(main())


def test_leaving_async_with_cancels_what_outlasts_the_grace(jobs: Tickoff) -> None:
    """It cleans up behind itself, and is recorded."""
    said: list[str] = []

    async def job() -> None:
        said.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            said.append("cleaned up")

    at_once(jobs)(job)

    async def main() -> None:
        async with jobs:
            while not said:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert said == ["begun", "cleaned up"]
    assert last(jobs).error == "the server stopped before it ended"


def test_on_our_own_loop_it_cleans_up_too(jobs: Tickoff) -> None:
    """Before the loop ends."""
    said: list[str] = []

    async def job() -> None:
        said.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            said.append("cleaned up")

    at_once(jobs)(job)
    with jobs:
        assert eventually(lambda: said)
    assert said == ["begun", "cleaned up"]


def test_what_ends_within_the_grace_is_let_be() -> None:
    """And recorded as ok."""
    jobs = Tickoff("memory://", grace="10s")
    said: list[str] = []

    def job() -> None:
        said.append("begun")
        time.sleep(0.3)

    at_once(jobs)(job)
    with jobs:
        assert eventually(lambda: said)
    assert last(jobs).outcome is Outcome.OK
    jobs.close()


def test_sync_work_is_told_and_keeps_its_thread(jobs: Tickoff) -> None:
    """`tick.check()` raises; the run is recorded without waiting for it."""
    said: list[str] = []
    go_on = threading.Event()

    def job(tick: Tick) -> None:
        said.append("begun")
        go_on.wait(10)
        with pytest.raises(LeaseLost):
            tick.check()
        said.append("told")

    at_once(jobs)(job)
    with jobs:
        assert eventually(lambda: said)
    assert last(jobs).outcome is Outcome.FAILED
    go_on.set()
    assert eventually(lambda: said == ["begun", "told"])


def test_a_leader_that_steps_down_frees_the_name_at_once(jobs: Tickoff) -> None:
    """Its successor needs not wait for the TTL."""
    said: list[str] = []

    @jobs.leader("watch", ttl="60s")
    async def watch() -> None:
        said.append("leads")
        await asyncio.sleep(60)

    jobs._grace = 5.0
    with jobs:
        assert eventually(lambda: said)
        assert not jobs.race("watch")
    assert jobs.race("watch")


def test_nothing_to_serve_is_refused(jobs: Tickoff) -> None:
    """And a name that is not there; afterwards it may still be decorated."""
    with pytest.raises(ConfigError, match="nothing to serve"):
        jobs.serve()
    jobs.every("1m", name="a")(lambda: None)
    with pytest.raises(ConfigError, match=r"only='b'.*: a"):
        jobs.serve(only="b")
    jobs.every("1m", name="b")(print)


def test_one_serves_at_a_time(jobs: Tickoff) -> None:
    """The second is refused, and does not harm the first."""
    ticks: list[object] = []
    jobs.every("100ms")(lambda_named(ticks))

    async def second() -> None:
        async with jobs:
            """Never reached."""

    with jobs:
        with pytest.raises(TickoffError, match="already"):
            jobs.serve()
        with pytest.raises(TickoffError, match="already"):
            asyncio.run(second())
        count = len(ticks)
        assert eventually(lambda: len(ticks) > count + 1)


def test_a_function_that_comes_after_the_start_is_refused(jobs: Tickoff) -> None:
    """It would never run; afterwards it is welcome."""
    jobs.every("1m", name="a")(lambda: None)
    with jobs:
        with pytest.raises(ConfigError, match="name='b' comes too late"):
            jobs.every("1m", name="b")(print)
        with pytest.raises(ConfigError, match="name='c' comes too late"):
            jobs.leader("c")(print)
    jobs.every("1m", name="b")(print)


def test_serve_in_a_thread_ends_with_close(jobs: Tickoff) -> None:
    """Only the main thread gets signals."""
    ticks: list[object] = []
    jobs.every("100ms")(lambda_named(ticks))
    thread = threading.Thread(target=jobs.serve)
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    assert eventually(lambda: ticks)
    assert signal.getsignal(signal.SIGTERM) is before
    jobs.close()
    thread.join(10)
    assert not thread.is_alive()


def test_only_one_of_the_names_is_served(jobs: Tickoff) -> None:
    """The others are another server's."""
    one: list[object] = []
    two: list[object] = []
    jobs.every("100ms", name="one")(lambda_named(one))
    jobs.every("100ms", name="two")(lambda: two.append(1))
    thread = threading.Thread(target=lambda: jobs.serve(only="one"))
    thread.start()
    assert eventually(lambda: len(one) > 2)
    jobs.close()
    thread.join(10)
    assert two == []


def test_serving_says_what_it_serves_and_where(jobs: Tickoff, caplog: pytest.LogCaptureFixture) -> None:
    """An hourly job says nothing else for an hour; of many names, some."""
    caplog.set_level("INFO", "tickoff")
    for number in range(7):
        jobs.cron("0 0 1 1 *", name=f"job-{number}")(lambda_named([]))
    thread = threading.Thread(target=jobs.serve)
    thread.start()
    assert eventually(lambda: "serving" in caplog.text)
    jobs.close()
    thread.join(10)
    assert (
        f"serving job-0, job-1, job-2, job-3, job-4 and 2 more, refereed by {jobs.store.address}"
        in caplog.text
    )


def test_a_forked_child_serves_nothing(redis: Server, name: str) -> None:
    """Until it is told to; and then on its own."""
    jobs = Tickoff(redis.url, namespace=name, grace=0)
    ticks: list[object] = []
    jobs.every("100ms")(lambda_named(ticks))
    with jobs:
        assert eventually(lambda: ticks)

        def child() -> None:
            ticks.clear()
            time.sleep(0.3)
            assert ticks == []
            with jobs:
                assert eventually(lambda: ticks)

        assert in_child(child) == 0
        count = len(ticks)
        assert eventually(lambda: len(ticks) > count)


class Program:
    """A serving program, and what it says."""

    def __init__(self, url: str, job: str, grace: str) -> None:
        run_before(Tickoff(url), "job")
        command = [sys.executable, "-m", "tests.serving_program", url, job, grace]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def said(self) -> str:
        """The next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ends(self) -> tuple[int, list[str]]:
        """Its exit code, and what else it said."""
        rest, _ = self.process.communicate(timeout=30)
        return self.process.returncode, rest.splitlines()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[[str, str], Program]]:
    """Starts programs, waits until their job has begun, and ends what is left of them."""
    started: list[Program] = []

    def start(job: str, grace: str) -> Program:
        one = Program(f"sqlite:///{tmp_path}/tickoff.db", job, grace)
        started.append(one)
        assert one.said() == "serving"
        return one

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def outcome(folder: Path) -> tuple[Outcome, str]:
    """How the last run ended."""
    store = Tickoff(f"sqlite:///{folder}/tickoff.db").store
    run = store.history("job")[0]
    return run.outcome, run.error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_end(
    program: Callable[[str, str], Program], tmp_path: Path, number: signal.Signals
) -> None:
    """Within the grace; and the program goes on after `serve`."""
    one = program("sync_short", "20s")
    assert one.said() == "begun"
    one.process.send_signal(number)
    assert one.ends() == (0, ["ended", "over"])
    assert outcome(tmp_path) == (Outcome.OK, "")


@pytest.mark.parametrize(("job", "word"), [("sync_long", "told"), ("async_long", "cleaned up")])
def test_what_outlasts_the_grace_is_told_and_recorded(
    program: Callable[[str, str], Program], tmp_path: Path, job: str, word: str
) -> None:
    """Async work is cancelled; sync work that does not listen does not keep the process."""
    one = program(job, "0.5s")
    assert one.said() == "begun"
    began = time.monotonic()
    one.process.send_signal(signal.SIGTERM)
    assert one.ends() == (0, [word, "over"])
    assert 0.4 < time.monotonic() - began < 15
    assert outcome(tmp_path) == (Outcome.FAILED, "the server stopped before it ended")


def test_a_second_signal_ends_now(program: Callable[[str, str], Program], tmp_path: Path) -> None:
    """Whatever is left of the grace; what is cut off is recorded."""
    one = program("async_long", "60s")
    assert one.said() == "begun"
    began = time.monotonic()
    one.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert one.process.poll() is None
    one.process.send_signal(signal.SIGTERM)
    assert one.ends() == (0, ["cleaned up", "over"])
    assert time.monotonic() - began < 20
    assert outcome(tmp_path)[0] is Outcome.FAILED


def test_a_child_that_a_job_forked_ends_by_sigterm(program: Callable[[str, str], Program]) -> None:
    """Though it inherited the handlers of the server."""
    one = program("forks", "5s")
    assert one.said() == f"begun {-signal.SIGTERM}"
    os.kill(one.process.pid, signal.SIGTERM)
    assert one.ends() == (0, ["over"])
