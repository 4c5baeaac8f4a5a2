"""`@jobs.once` where other schedulers fire: an APScheduler job, a Celery task's body, a Django command."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT
from tickoff import Tickoff
from tickoff.model import Outcome
from tickoff.ticks.tick import Tick

YEARLY = "0 0 1 1 *"


@pytest.fixture
def fleet(redis: Any) -> Iterator[list[Tickoff]]:
    """Two servers on one store."""
    servers = [Tickoff(redis.url) for _ in range(2)]
    yield servers
    for server in servers:
        server.close()


def test_an_apscheduler_job_runs_on_one_server(fleet: list[Tickoff], name: str) -> None:
    """Two schedulers fire the same job; both fire, one runs, with its arguments and its tick."""
    from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
    from apscheduler.schedulers.background import BackgroundScheduler

    ran: list[tuple[str, int]] = []
    values: list[object] = []
    fired = threading.Semaphore(0)

    def take_in(event: Any) -> None:
        values.append(event.exception or event.retval)
        fired.release()

    schedulers = []
    for server in fleet:

        @server.once(name, cron=YEARLY)
        def work(tick: Tick, word: str) -> str:
            ran.append((word, tick.fence))
            return word

        scheduler = BackgroundScheduler(timezone="UTC")
        scheduler.add_listener(take_in, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
        scheduler.add_job(work, "date", args=["done"])
        schedulers.append(scheduler)
    for scheduler in schedulers:
        scheduler.start()
    assert all(fired.acquire(timeout=30) for _ in fleet)
    for scheduler in schedulers:
        scheduler.shutdown()
    assert sorted(values, key=str) == [None, "done"]
    assert [word for word, _ in ran] == ["done"]


def test_an_apscheduler_coroutine_runs_on_one_server(fleet: list[Tickoff], name: str) -> None:
    """The same on an event loop."""
    import asyncio

    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    ran: list[str] = []

    async def main() -> None:
        scheduler = AsyncIOScheduler(timezone="UTC")
        done = asyncio.Semaphore(0)
        for server in fleet:

            @server.once(name, cron=YEARLY)
            async def work(word: str) -> None:
                await asyncio.sleep(0)
                ran.append(word)

            async def fire(work: Any = work) -> None:
                await work("done")
                done.release()

            scheduler.add_job(work, "date", args=["done"])
            scheduler.add_job(fire, "date")
        scheduler.start()
        for _ in fleet:
            await asyncio.wait_for(done.acquire(), 30)
        scheduler.shutdown()

    asyncio.run(main())
    assert ran == ["done"]


def test_a_celery_task_s_body_runs_on_one_server(fleet: list[Tickoff], name: str) -> None:
    """Bound and not; Celery checks the arguments against what it sees of the signature, tick left out."""
    from celery import Celery

    app = Celery("tests", set_as_current=False)
    app.conf.update(task_always_eager=True, task_eager_propagates=True)
    tasks = []
    for number, server in enumerate(fleet):

        @app.task(name=f"work-{number}")
        @server.once(name, cron=YEARLY)
        def work(a: int, *, b: int, tick: Tick) -> int:
            assert tick.fence > 0
            return a + b

        tasks.append(work)
    values = [task.delay(1, b=2).get() for task in tasks]
    assert sorted(values, key=str) == [3, None]
    with pytest.raises(TypeError):
        tasks[0].delay(1, b=2, c=3)


COMMAND = """
import sys
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=[])
django.setup()
from django.core.management import BaseCommand, call_command
from tickoff import Tickoff

jobs = Tickoff(sys.argv[1])

class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("file")
        parser.add_argument("--limit", type=int)

    @jobs.once(sys.argv[2], cron="0 0 1 1 *")
    def handle(self, *args, tick, **options):
        return f"{options['file']} {options['limit']} {tick.at:%m-%d}"

for _ in range(2):
    print(call_command(Command(), "rows.csv", limit=5))
"""


def test_a_django_command_runs_on_one_server(redis: Any, name: str) -> None:
    """Its `handle`, with options and output as ever; the second call gets None."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, redis.url, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.splitlines(), done.stderr) == (["rows.csv 5 01-01"] * 2 + ["None"], "")
    jobs = Tickoff(redis.url)
    assert [run.outcome for run in jobs.store.history(name)] == [Outcome.OK]
    jobs.close()


TYPED = """
from typing import assert_type

from tickoff import Tickoff
from tickoff.ticks.tick import Tick

jobs = Tickoff("memory://")


@jobs.once("a", cron="0 * * * *")
def count(a: int, *, b: str = "") -> int:
    return a


@jobs.once("b", every="1h", ttl="60s", timeout="5m", attempts=2, recover="now")
async def fetch(a: int) -> list[str]:
    return []


@jobs.once("c", every=3600)
def ticked(tick: Tick, a: int) -> int:
    return a


@jobs.once("d", every="1h")
async def fetched(tick: Tick) -> bytes:
    return b""


class Command:
    @jobs.once("e", cron="@daily", tz="Europe/Berlin")
    def handle(self, *words: str, **options: int) -> str:
        return ""


assert_type(count(1, b=""), int | None)
assert_type(ticked(1), int | None)
assert_type(Command().handle("a", b=1), str | None)


async def main() -> None:
    assert_type(await fetch(1), list[str] | None)
    assert_type(await fetched(), bytes | None)
"""

WRONG = """
from tickoff import Tickoff

jobs = Tickoff("memory://")


@jobs.once("a", cron="0 * * * *")
def count(a: int) -> int:
    return a


count("a")
count(1) + 1
jobs.once("b", cron=5)
jobs.once("c", every="1h", recover="maybe")
"""


def mypy(text: str, folder: Path) -> str:
    """What mypy says of a user's file, strictly."""
    file = folder / "user.py"
    file.write_text(text, "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--strict", str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110).stdout


def test_the_signature_is_kept_for_type_checkers(tmp_path: Path) -> None:
    """The value may be None, a first parameter that is a Tick is filled in; what is wrong is seen."""
    assert "Success" in mypy(TYPED, tmp_path)
    assert mypy(WRONG, tmp_path).count("error:") == 4
