"""`Tickoff`: the object users make one of per application; each of its ideas is a file beside this one."""

from __future__ import annotations

from .each import Each
from .locks import Locks

__all__ = ["Tickoff"]


class Tickoff(Each, Locks):
    """Work for a fleet, refereed by the Redis or the database it already has.

    Making one connects to nothing and starts no thread; the environment is read at first use
    (`TICKOFF_URL`, `TICKOFF_NAMESPACE`). Without any URL, a SQLite file in the working folder
    coordinates the processes of this machine.
    """
