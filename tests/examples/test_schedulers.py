"""APScheduler, Celery and Django fire on every server; each hour runs once."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from dev.servers import Server

from tests.examples.running import ROOT, Stage, eventually


def hours_run(stage: Stage, saying: str) -> list[str]:
    """The ticks that were run, from what all programs said."""
    return re.findall(rf"{saying} (\d\d:00)", stage.everything_said())


def test_apscheduler_fires_on_every_server_and_one_runs(stage: Stage, redis: Server) -> None:
    """Three schedulers, fired each second for an hourly tick: one run in the hour."""
    stage.environment["TICKOFF_URL"] = redis.url
    for _ in range(3):
        stage.hurried("1s", "examples.apscheduler_app", "apscheduler")

    def fired(said: str) -> int:
        return said.count("executed successfully")

    eventually(lambda: all(fired(program.said) >= 2 for program in stage.programs), stage)
    hours = hours_run(stage, "importing for")
    assert hours
    assert len(set(hours)) == len(hours)
    assert "Traceback" not in stage.everything_said()


def test_celery_beats_on_every_server_and_one_message_runs(
    stage: Stage, redis: Server, tmp_path: Path
) -> None:
    """Three beats send each second, two workers receive; one run in the hour, the others return None."""
    stage.environment |= {"TICKOFF_URL": redis.url, "CELERY_BROKER_URL": redis.url.removesuffix("/0") + "/9"}
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        stage.hurried("1s", "examples.celery_app", "beat", str(folder))
    workers = [stage.hurried("1s", "examples.celery_app", "worker") for _ in range(2)]

    def done() -> int:
        return sum(worker.said.count("succeeded in") for worker in workers)

    eventually(lambda: done() >= 6, stage)
    hours = hours_run(stage, "imported for")
    assert hours, stage.everything_said()
    assert len(set(hours)) == len(hours)
    assert "None" in stage.everything_said()
    assert "Traceback" not in stage.everything_said()


SITE = ROOT / "examples" / "django_shop"


@pytest.fixture
def site(stage: Stage, redis: Server, tmp_path: Path) -> Stage:
    """The Django project with its table made."""
    stage.environment |= {"TICKOFF_URL": redis.url, "SHOP_DB": str(tmp_path / "shop.sqlite3")}
    stage.environment["PYTHONPATH"] = f"{ROOT}:{SITE}"
    made = stage.run("manage.py", "migrate", "--run-syncdb", cwd=SITE)
    assert made.process.returncode == 0, made.said
    return stage


def test_a_django_command_works_once_an_hour_wherever_it_is_called(site: Stage) -> None:
    """Both end with status 0; one says what it did."""
    begun = hour()
    calls = [site.run("manage.py", "import_products", cwd=SITE) for _ in range(2)]
    assert [call.process.returncode for call in calls] == [0, 0], site.everything_said()
    said = [call.said for call in calls]
    assert said == ["2 products\n", ""] or (hour() > begun and said == ["2 products\n"] * 2)


def hour() -> int:
    """The hour it is, counted from the epoch."""
    return int(time.time() // 3600)


def test_django_serves_its_jobs_and_guards_what_they_write(site: Stage, tmp_path: Path) -> None:
    """Two servers, due each second: the rows are there once, and the fence has been seen."""
    import sqlite3

    for _ in range(2):
        site.start("-c", HURRIED_SITE, cwd=SITE)
    path = tmp_path / "shop.sqlite3"

    def rows() -> list[tuple[int, str]]:
        with sqlite3.connect(path, timeout=30) as db:
            return db.execute("SELECT number, name FROM shop_product ORDER BY number").fetchall()

    eventually(rows, site)
    eventually(lambda: site.everything_said().count("ok after") >= 3, site)
    assert [program.terminate() for program in site.programs[-2:]] == [0, 0]
    assert rows() == [(1, "tea"), (2, "coffee")]
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM tickoff_fence").fetchone() == (1,)


HURRIED_SITE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
import django
django.setup()
from django.core.management import call_command
from tests.examples.hurried import hurry
import shop.jobs
hurry(shop.jobs, "1s")
call_command("serve_jobs")
"""
