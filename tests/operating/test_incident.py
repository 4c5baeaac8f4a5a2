"""The incident of docs/operating.md, played on real processes: each cause is named."""

from __future__ import annotations

import pytest
from dev.incident import BEGIN, END, PAGE, Scene, play

NAMED = {
    "The winner is killed": (
        "ERROR export: tick of",
        "was due, and nobody finished it: web-1:",
        "started it at",
        "Nobody took it over",
    ),
    "A server is cut off": (
        "web-3",
        "crashed: its lease ran out",
        "it lost its lease after",
        "ttl-short: leases were lost",
    ),
    "Somebody paused the job": (
        "it was skipped by",
        "paused by ann@laptop: stock-taking until noon",
        "resume it first: tickoff resume export",
        "resumed export; its next tick is",
    ),
    "A server with a wrong clock and an old schedule": (
        "clock: clocks differ",
        "web-4",
        "schedule: servers mean",
        "'every 4s' on",
        "'every 6s' on",
    ),
    "Redis is set to evict": ("redis-eviction", "allkeys-lru", "noeviction"),
}


@pytest.mark.timeout(400)  # half a minute on a machine of its own
def test_every_cause_is_named_as_the_page_tells() -> None:
    """By explain or by the doctor, whatever broke; the page has the scenes and commands that are played."""
    scenes = {scene.title: scene for scene in play()}
    for title, words in NAMED.items():
        text = " ".join(scenes[title].text.split())
        assert [word for word in words if word not in text] == [], text
    _compare_with_the_page(scenes)


def _compare_with_the_page(scenes: dict[str, Scene]) -> None:
    """It is written anew with `python -m dev.incident --write`."""
    told = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert [line[4:] for line in told.splitlines() if line.startswith("### ")] == list(scenes)
    shown = [line[2:].split()[:2] for line in told.splitlines() if line.startswith("$ ")]
    assert shown == [command.split()[:2] for scene in scenes.values() for command, _ in scene.typed]
