"""`tickoff next` shows when a schedule ticks."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from tickoff.cli import program
from tickoff.ground import clocks
from tickoff.operating.words import length
from tickoff.schedules import zones
from tickoff.schedules.schedule import cron


@pytest.fixture
def now(monkeypatch):
    """Saturday before clocks are put forward in Berlin, 02:27 there."""
    instant = int(datetime(2026, 3, 28, 1, 27, tzinfo=UTC).timestamp() * 1000)
    monkeypatch.setattr(clocks, "wall", lambda: instant)
    return instant


def shown(*arguments):
    done = CliRunner().invoke(program, ["next", *arguments], catch_exceptions=False)
    return done.output.splitlines()


def test_a_tick_is_shown_by_the_zone_s_clock_in_utc_and_in_words(now):
    """And the one that was moved says why."""
    assert shown("--cron", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3") == [
        "30 2 * * * Europe/Berlin",
        "Sat 2026-03-28 02:30:00 CET   2026-03-28 01:30:00 UTC  in 3 minutes",
        "Sun 2026-03-29 03:00:00 CEST  2026-03-29 01:00:00 UTC  in 23 hours 33 minutes",
        "  clock goes forward: there is no 02:30, moved here",
        "Mon 2026-03-30 02:30:00 CEST  2026-03-30 00:30:00 UTC  in 1 day 23 hours",
    ]


def test_a_period_is_shown_by_the_host_s_clock(now, monkeypatch):
    """It has no zone of its own."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert shown("--every", "90s", "-n", "1") == [
        "every 1m30s",
        "Sat 2026-03-28 10:28:30 JST  2026-03-28 01:28:30 UTC  in 1 minute 30 seconds",
    ]


def test_parts_of_seconds_are_shown(now, monkeypatch):
    """Ticks that differ look different."""
    monkeypatch.setenv("TZ", "UTC")
    assert [line[:27] for line in shown("--every", "250ms", "-n", "2")[1:]] == [
        "Sat 2026-03-28 01:27:00.250",
        "Sat 2026-03-28 01:27:00.500",
    ]


def test_a_period_can_be_shown_where_the_host_s_zone_cannot_be_told(now, monkeypatch, tmp_path):
    """Its ticks do not depend on it; those of a cron line do."""
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(zones, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", tmp_path / "timezone")
    (tmp_path / "localtime").write_bytes(b"TZif")
    assert "01:27:30 UTC" in shown("--every", "30s", "-n", "1")[1]
    with pytest.raises(zones.ConfigError, match="set TZ, or pass --tz"):
        shown("--cron", "@hourly")


def test_five_ticks_are_shown_unless_told_otherwise(now):
    """Under the line that says what they are ticks of."""
    assert len(shown("--cron", "@hourly", "--tz", "UTC")) == 6


def test_json_has_it_all(tickoff):
    """A real process, by its own clock."""
    done = tickoff("next", "--cron", "*/5 * * * *", "-n", "2", "--json", TZ="Asia/Kolkata")
    told = json.loads(done.stdout)
    assert told["schedule"] == "*/5 * * * * Asia/Kolkata"
    first, second = (datetime.fromisoformat(tick["at"]) for tick in told["ticks"])
    assert (second - first).total_seconds() == 300
    assert 0 < told["ticks"][0]["in_seconds"] <= 300
    assert told["ticks"][0]["local"].endswith("+05:30")
    assert datetime.fromisoformat(told["ticks"][0]["local"]) == first
    assert told["ticks"][0]["note"] == ""
    schedule = cron("*/5 * * * *", "Asia/Kolkata")
    around = [int(first.timestamp() * 1000) + shift for shift in (-86_400_000, 0)]
    assert told["digest"] in [schedule.digest(instant) for instant in around]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give exactly one of cron"),
        (["--cron", "@hourly", "--every", "5s"], "give exactly one of cron"),
        (["--every", "5s", "--tz", "UTC"], "tz='UTC' means nothing to every"),
        (["--cron", "61 * * * *"], "the minute '61' is not understood"),
        (["--cron", "@hourly", "--tz", "Europe/Berln"], 'did you mean "Europe/Berlin"?'),
        (["--every", "0"], "every='0' is too short"),
        (["--cron", "@hourly", "-n", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_status_2(tickoff, arguments, said):
    """With no traceback, and nothing on stdout."""
    done = tickoff("next", *arguments, TZ="UTC")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (1, "1 ms"),
        (1_999, "1 second"),
        (45_000, "45 seconds"),
        (180_000, "3 minutes"),
        (3_605_000, "1 hour"),
        (2 * 86_400_000 + 3_600_000, "2 days 1 hour"),
        (86_400_000 + 60_000, "1 day"),
    ],
)
def test_how_long_is_said_in_two_units(ms, words):
    """More would not be read."""
    assert length(ms) == words


def test_it_imports_neither_a_database_nor_redis(environment):
    """It starts fast: it needs none."""
    code = (
        "import sys\n"
        "from tickoff.cli import program\n"
        "program.main(['next', '--every', '1s'], prog_name='tickoff', standalone_mode=False)\n"
        "heavy = {'sqlalchemy', 'redis', 'psycopg', 'pymysql', 'rich'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
