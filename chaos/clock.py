"""Wrong wall clocks: by libfaketime where it is installed, which nothing escapes, else in Python only."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_LIBRARIES = (
    *Path("/usr/lib").glob("*/faketime/libfaketime.so.1"),
    *Path("/usr/local/lib/faketime").glob("libfaketime.so.1"),
)

_ENVIRONMENT = {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

_FILE = "FAKETIME_TIMESTAMP_FILE"

_loaded = os.environ.get("LD_PRELOAD", "").endswith("libfaketime.so.1")


def faketime() -> dict[str, str]:
    """What the environment of a process needs so that its clock can be set; empty where not installed."""
    return {"LD_PRELOAD": str(_LIBRARIES[0]), **_ENVIRONMENT} if _LIBRARIES else {}


def obey(file: Path, skew: float) -> None:
    """From now on the wall clock of this process is wrong by so many seconds, or what the file says."""
    if _loaded:
        set_wrong(file, skew)
        os.environ[_FILE] = str(file)
        time.sleep = _sleep
    else:
        _skew_in_python(skew)


def set_wrong(file: Path, skew: float) -> None:
    """Set the clock of the process that obeys the file; a stopped one finds it set when it goes on."""
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(f"{skew:+.3f}s")
    fresh.rename(file)


def _sleep(seconds: float) -> None:
    """The interpreter's own sleep fails under libfaketime: it sleeps until an absolute time."""
    threading.Event().wait(seconds)


def _skew_in_python(seconds: float) -> None:
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)
