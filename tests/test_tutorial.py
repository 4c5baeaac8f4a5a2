"""The tutorial and the how-to pages, to the letter: commands typed into one shell, output compared."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from dev.servers import Server, free_port, redis_server

from tests.pages import ROOT, blocks_of, commands_of
from tests.reader import INSTALLING, follow, shell_in

PAGE = ROOT / "docs" / "tutorial.md"
REDIS = "redis://localhost:6379"
HOW_TO = [
    page
    for page in [ROOT / "docs" / "crontab.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
    if any(block.language == "console" for block in blocks_of(page))
]

HOUR = 3600


@pytest.mark.timeout(400)
def test_the_tutorial_works_to_the_letter(tmp_path: Path, redis: Server) -> None:
    """Each file is written, each command typed; it prints what the page says."""
    with shell_in(tmp_path) as shell:
        for block in blocks_of(PAGE):
            if block.title is not None:
                (tmp_path / block.title).write_text(block.text, "utf-8")
            if block.language == "console":
                follow(PAGE, block, shell, {f"{REDIS}/0": redis.url})


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", HOW_TO, ids=[page.stem for page in HOW_TO])
def test_a_how_to_page_works_to_the_letter(page: Path, tmp_path: Path) -> None:
    """On a Redis of its own, since `tickoff ls` lists all that is there; where the programs are."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    _away_from_the_hour()
    with redis_server() as redis, shell_in(tmp_path) as shell:
        there = {REDIS: redis.url.rpartition("/")[0], "8000": str(free_port())}
        for block in blocks_of(page):
            if block.language == "console":
                follow(page, block, shell, there)


def _away_from_the_hour() -> None:
    """The pages have hourly jobs: what is typed before and after the full hour would be two ticks."""
    left = HOUR - time.time() % HOUR
    if left < 60:
        time.sleep(left)


def test_every_way_to_run_jobs_has_a_page_that_is_followed() -> None:
    """A page without commands to try leaves the reader waiting for the next full hour."""
    assert {page.stem for page in HOW_TO} >= {
        "crontab",
        "fastapi",
        "flask",
        "django",
        "apscheduler",
        "celery",
    }


def test_the_tutorial_installs_what_the_project_offers() -> None:
    """The lines that the test passes over are the first block, and nothing else."""
    first = next(block for block in blocks_of(PAGE) if block.language == "console")
    assert all(command.line.startswith(INSTALLING) for command in commands_of(first))
    assert "pip install 'tickoff[redis]'" in first.text
