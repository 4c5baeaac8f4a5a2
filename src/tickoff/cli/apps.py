"""`--app MODULE[:NAME]`: the application whose jobs and records a command is about."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..app import Tickoff

app_option = click.option(
    "--app",
    envvar="TICKOFF_APP",
    show_envvar=True,
    metavar="MODULE[:NAME]",
    help="The module that makes your Tickoff, such as shop.jobs; NAME if it makes more than one.",
)


def load_app(text: str | None) -> Tickoff:
    """Import the module, from the working folder if it lies there, and find its Tickoff."""
    if not text:
        raise ConfigError("no application is named; pass --app MODULE[:NAME] or set TICKOFF_APP")
    module, _, name = text.partition(":")
    if not module or module.startswith("."):
        raise ConfigError(
            f"--app={text} names no module; write MODULE[:NAME], such as shop.jobs or shop.jobs:jobs"
        )
    loaded = _imported(module)
    return _named(loaded, name) if name else _only_one(loaded)


def _imported(module: str) -> ModuleType:
    _make_working_folder_importable()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _broken(module, error) from error
        raise ConfigError(
            f"there is no module {error.name!r} for --app={module}; write it as Python imports it, "
            f"from {Path.cwd()} or from what is installed"
        ) from error
    except Exception as error:
        raise _broken(module, error) from error


def _make_working_folder_importable() -> None:
    """As `python -m` does; the installed command does not by itself."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _broken(module: str, error: Exception) -> ConfigError:
    """The module is there and fails while it is imported: say where."""
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    at = next((frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())), frames[0])
    return ConfigError(
        f"importing {module!r} failed in {at.filename}, line {at.lineno}: {type(error).__name__}: {error}"
    )


def _named(module: ModuleType, name: str) -> Tickoff:
    from ..app import Tickoff

    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Tickoff):
        return found
    raise ConfigError(f"{module.__name__}:{name} is no Tickoff{_instead(module)}")


def _only_one(module: ModuleType) -> Tickoff:
    """The module's Tickoff; several names for the same one are fine."""
    from ..app import Tickoff

    distinct = {id(made): made for made in vars(module).values() if isinstance(made, Tickoff)}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if distinct:
        raise ConfigError(f"{module.__name__} has more than one Tickoff{_instead(module)}")
    raise ConfigError(f"{module.__name__} has no Tickoff; make one in it: jobs = Tickoff(...)")


def _instead(module: ModuleType) -> str:
    from ..app import Tickoff

    names = [name for name, made in vars(module).items() if isinstance(made, Tickoff)]
    return f"; write --app={module.__name__}:{names[0]}, one of {', '.join(names)}" if names else ""
