"""`Tickoff`: the object users make one of per application; each of its ideas is a file beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..durations import Duration
from ..stores.base import LeaseStore
from .locks import Locks
from .once import Onces
from .operating import Operating

if TYPE_CHECKING:
    import redis
    import sqlalchemy

__all__ = ["Tickoff"]


class Tickoff(Locks, Onces, Operating):
    """Work for a fleet, refereed by the Redis or the database it already has.

    Making one connects to nothing and starts no thread; the environment is read at first use
    (`TICKOFF_URL`, `TICKOFF_NAMESPACE`). Without any URL, a SQLite file in the working folder
    coordinates the processes of this machine. `database` is where the tables with records are, if not
    where the leases are (`TICKOFF_DATABASE`). `slots` is how many ticks may run in this process at a time,
    `grace` how long they may go on after it was told to stop, `alarm` how late a tick may be before it is
    reported as missed (None: never).
    """

    def __init__(
        self,
        url: str | sqlalchemy.Engine | redis.Redis | LeaseStore | None = None,
        *,
        database: str | sqlalchemy.Engine | None = None,
        namespace: str | None = None,
        slots: int = 32,
        grace: Duration = "30s",
        alarm: Duration | None = "60s",
    ) -> None:
        super().__init__(url, database=database, namespace=namespace, slots=slots, grace=grace, alarm=alarm)
