"""Time zones by name, and the host's."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tickoff.errors import ConfigError
from tickoff.schedules import zones
from tickoff.schedules.schedule import cron, host_zone


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host on which nothing is set."""
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(zones, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", tmp_path / "timezone")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Europe/Berln", 'did you mean "Europe/Berlin"'),
        ("europe/berlin", 'did you mean "Europe/Berlin"'),
        ("berlin", 'did you mean "Europe/Berlin"'),
        ("tokyo", 'did you mean "Asia/Tokyo"'),
        ("CEST", 'write an IANA name such as "Europe/Berlin"'),
        ("Europe", "unknown time zone"),
        ("localtime", "not the same on every host"),
        ("right/Europe/Berlin", "not the same on every host"),
        ("", "no time zone"),
        ("../../etc/passwd", "no time zone"),
        ("/etc/localtime", "no time zone"),
        ("Europe/Berlin\x00", "no time zone"),
        ("Europe/Berlin\n", "no time zone"),
        ("E" * 10_000, "no time zone"),
        ("E" * 64, "unknown time zone"),
        ("\u202eUTC", "no time zone"),
        ("{UTC}", "no time zone"),
        ("+02:00", "no time zone"),
        (b"UTC", "not a text"),
        (1.5, "not a text"),
        (ZoneInfo("UTC"), "not a text"),
    ],
)
def test_what_is_no_zone_is_refused_with_what_was_meant(name: Any, said: str) -> None:
    """A near miss is named, and nothing but a configuration error comes of it."""
    with pytest.raises(ConfigError, match="tz=") as refused:
        cron("@hourly", name)
    assert refused.match(said)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("set_to", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("", "UTC"),
        ("EST5EDT", "EST5EDT"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        (":/usr/share/zoneinfo/posix/Asia/Tokyo", "Asia/Tokyo"),
    ],
)
def test_the_environment_comes_first(
    host: Path, monkeypatch: pytest.MonkeyPatch, set_to: str, zone: str
) -> None:
    """As it does for the C library, in the spellings that it takes."""
    (host / "localtime").symlink_to("/usr/share/zoneinfo/America/Lima")
    monkeypatch.setenv("TZ", set_to)
    assert host_zone() == zone


def test_the_environment_may_point_to_the_system_s_link(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TZ=:/etc/localtime is a common setting: it saves the C library some calls."""
    (host / "localtime").symlink_to("/usr/share/zoneinfo/America/Lima")
    monkeypatch.setenv("TZ", f":{host}/localtime")
    assert host_zone() == "America/Lima"


@pytest.mark.parametrize(
    ("target", "zone"),
    [
        ("/usr/share/zoneinfo/America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("/var/db/timezone/zoneinfo/Asia/Kolkata", "Asia/Kolkata"),
        ("/usr/share/zoneinfo.default/Asia/Kolkata", "Asia/Kolkata"),
    ],
)
def test_the_system_s_link_names_the_zone(host: Path, target: str, zone: str) -> None:
    """On Linux and on macOS; a file that says otherwise is out of date."""
    (host / "localtime").symlink_to(target)
    (host / "timezone").write_text("Europe/Oslo\n")
    assert host_zone() == zone


def test_a_copied_file_has_its_name_beside_it(host: Path) -> None:
    """Debian writes both."""
    (host / "localtime").write_bytes(b"TZif")
    (host / "timezone").write_text("Europe/Oslo\n")
    assert host_zone() == "Europe/Oslo"


def test_a_host_on_which_nothing_is_set_is_in_utc(host: Path) -> None:
    """As its cron is."""
    assert host_zone() == "UTC"


def test_a_zone_that_cannot_be_told_is_refused_with_the_remedy(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never a guess: other servers would disagree."""
    (host / "localtime").write_bytes(b"TZif")
    with pytest.raises(ConfigError, match=r"does not say its zone's name; set TZ, or pass --tz"):
        host_zone()
    (host / "timezone").write_bytes(b"\xff\xfe nonsense")
    with pytest.raises(ConfigError, match="is no time zone"):
        host_zone()
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    with pytest.raises(ConfigError, match="TZ="):
        host_zone()
    monkeypatch.delenv("TZ")
    (host / "localtime").unlink()
    (host / "localtime").symlink_to(host / "elsewhere")
    with pytest.raises(ConfigError, match="names no zone"):
        host_zone()
