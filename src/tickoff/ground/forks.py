"""After a fork, the child holds nothing: whoever has threads, sockets or leases is told to start anew."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something that does not survive a fork as it is."""

    def after_fork(self) -> None:
        """Start anew, in the child."""
        ...


_here = os.getpid()


def pid() -> int:
    """The process we are in; known after each fork, since asking the system costs more than making a bid."""
    return _here


_told: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell(survivor: Forked) -> None:
    """Call its `after_fork` in every child from now on."""
    _told.add(survivor)


def _tell_all() -> None:
    global _here
    _here = os.getpid()
    for survivor in list(_told):
        survivor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell_all)
