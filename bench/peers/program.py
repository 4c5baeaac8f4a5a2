"""Runs a part of a peer's module: `python -m bench.peers.program on_huey fill 20000`.

The module is imported, not run: peers that name their tasks after modules would miss them otherwise.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

URL = "BENCH_URL"
"""The environment's word for the broker; command lines of the peers leave no place for it."""


def url() -> str:
    """Where the broker is."""
    return os.environ[URL]


if __name__ == "__main__":
    name, part, *words = sys.argv[1:]
    getattr(import_module(f"bench.peers.{name}"), part)(*words)
