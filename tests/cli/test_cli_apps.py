"""`--app MODULE[:NAME]` finds the application, or says what to write instead."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tickoff import Tickoff
from tickoff.cli.apps import load_app
from tickoff.errors import ConfigError


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a name nobody has used into the working folder, and give its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text: str) -> str:
        name = f"app_{uuid4().hex}"
        Path(f"{name}.py").write_text(f"from tickoff import Tickoff\n{text}", "utf-8")
        return name

    return write


def test_the_only_tickoff_of_a_module_in_the_working_folder_is_found(module):
    """Two names for the same one are still one."""
    assert isinstance(load_app(module("jobs = Tickoff('memory://')\nagain = jobs")), Tickoff)


def test_a_name_tells_which_of_several_is_meant(module):
    """Also one that is an attribute of something else."""
    name = module("a = Tickoff('memory://')\nclass App:\n    jobs = Tickoff('memory://')")
    assert load_app(f"{name}:App.jobs") is not load_app(f"{name}:a")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("", "", "has no Tickoff"),
        ("a = Tickoff('memory://')\nb = Tickoff('memory://')", "", "one of a, b"),
        ("a = Tickoff('memory://')", ":c", "is no Tickoff; write"),
        ("a = 1", ":a", "is no Tickoff"),
        ("\n\nraise RuntimeError('no luck')", "", "line 4: RuntimeError: no luck"),
        ("import os\nos.environ['NO_SUCH']", "", r"app_.*\.py, line 3: KeyError: 'NO_SUCH'"),
        ("import a_missing_dependency", "", "ModuleNotFoundError: No module named 'a_missing_dependency'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(module, text, name, said):
    """The message names what to write, or where the module fails."""
    with pytest.raises(ConfigError, match=said):
        load_app(module(text) + name)


def test_a_module_that_is_not_there_is_told_from_one_that_is_broken():
    """With the folder it was looked for in."""
    with pytest.raises(ConfigError, match="there is no module 'no_such_module'"):
        load_app("no_such_module")
    with pytest.raises(ConfigError, match=r"there is no module 'tickoff\.no_such_part'"):
        load_app("tickoff.no_such_part")


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_module_the_remedy_is_named(text):
    """The option and its twin."""
    with pytest.raises(ConfigError, match=r"--app .* TICKOFF_APP"):
        load_app(text)


@pytest.mark.parametrize("text", [":jobs", ".jobs", "."])
def test_an_app_without_a_module_is_refused(text: str) -> None:
    """In words of ours, not in those of Python's importer."""
    with pytest.raises(ConfigError, match=r"names no module; write MODULE\[:NAME\]"):
        load_app(text)
