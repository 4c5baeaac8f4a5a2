"""Crontab, systemd units and Kubernetes manifests: parsed, and the tickoff lines in them understood."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.examples.running import ROOT
from tickoff.cli import program

EXAMPLES = ROOT / "examples"
UNITS = sorted((EXAMPLES / "systemd").iterdir())
MANIFESTS = sorted((EXAMPLES / "kubernetes").iterdir())


def understood(words: list[str]) -> dict[str, Any]:
    """The options of a tickoff command line as the command reads them; a wrong one raises."""
    name, *rest = words[words.index("tickoff") + 1 :]
    command = program.commands[name]
    return command.make_context(name, rest, resilient_parsing=False).params


def crontab_lines() -> list[tuple[str, str]]:
    """Each line of the crontab: its schedule and its command."""
    text = (EXAMPLES / "crontab").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#") and "=" not in line[:20]]
    return [(" ".join(line.split()[:5]), line.split(maxsplit=5)[5]) for line in lines]


@pytest.mark.parametrize(("schedule", "command"), crontab_lines())
def test_a_crontab_line_is_understood_and_means_the_tick_it_fires(schedule: str, command: str) -> None:
    """No unescaped percent sign, options that exist, and the schedule of `once` is cron's own."""
    assert "%" not in command
    read = understood(shlex.split(command))
    assert read.get("expression", read.get("cron", schedule)) in (schedule, None)


def test_the_crontab_shows_both_commands() -> None:
    """There is a line for each."""
    verbs = {shlex.split(command)[1] for _, command in crontab_lines()}
    assert verbs == {"once", "lock"}


def unit(path: Path) -> configparser.ConfigParser:
    """A systemd unit as configparser reads it; keys may repeat."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # systemd's keys have capitals
    parser.read_string(path.read_text("utf-8"))
    return parser


@pytest.mark.parametrize("path", UNITS, ids=[path.name for path in UNITS])
def test_a_systemd_unit_says_what_systemd_wants(path: Path) -> None:
    """A service starts a tickoff command that is understood; a timer has a calendar and a service."""
    read = unit(path)
    assert read["Unit"]["Description"]
    if path.suffix == ".timer":
        assert read["Timer"]["OnCalendar"]
        assert path.with_suffix(".service").exists()
    else:
        understood(shlex.split(read["Service"]["ExecStart"]))
        assert "TICKOFF_URL" in path.read_text("utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=[path.name for path in UNITS])
def test_systemd_itself_finds_nothing_wrong(path: Path) -> None:
    """`systemd-analyze verify` has no complaint about this file."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60
    )
    assert path.name not in done.stderr, done.stderr


@pytest.mark.parametrize("path", MANIFESTS, ids=[path.name for path in MANIFESTS])
def test_a_kubernetes_manifest_starts_a_command_that_is_understood(path: Path) -> None:
    """It parses, its container has a URL from a secret, and longer to stop than the grace."""
    manifest = yaml.safe_load(path.read_text("utf-8"))
    spec = manifest["spec"].get("jobTemplate", manifest)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    understood(container["args"])
    assert spec["terminationGracePeriodSeconds"] > 30
    urls = [one for one in container["env"] if one["name"] == "TICKOFF_URL"]
    assert urls[0]["valueFrom"]["secretKeyRef"]["name"]


def test_the_cronjob_and_its_command_have_one_schedule() -> None:
    """The pod's tick is that of the CronJob."""
    manifest = yaml.safe_load((EXAMPLES / "kubernetes" / "cronjob.yaml").read_text("utf-8"))
    args = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--cron={manifest['spec']['schedule']}" in args


def test_a_deployment_selects_its_own_pods() -> None:
    """The labels agree."""
    spec = yaml.safe_load((EXAMPLES / "kubernetes" / "deployment.yaml").read_text("utf-8"))["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_what_the_examples_name_is_what_the_command_line_has() -> None:
    """Every `tickoff WORD` in an example's own words is a command."""
    texts = [
        path.read_text("utf-8")
        for path in EXAMPLES.rglob("*")
        if path.suffix in {".py", ".service", ""} and path.is_file()
    ]
    shown = {
        word for text in texts for word in re.findall(r"^[^\n#]*?\btickoff ([a-z]+)\b", text, re.MULTILINE)
    }
    shown -= {"import"}
    assert {"once", "lock", "serve", "records"} <= shown <= set(program.commands)
