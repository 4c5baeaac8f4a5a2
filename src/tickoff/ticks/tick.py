"""What a job is told of the tick it runs: when, since when, and whether it may go on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING

from ..leases.lease import Lease
from ..model import moment

if TYPE_CHECKING:
    import sqlalchemy

    from ..writes import Guardable


class Tick:
    """One scheduled instant of a job, in the hands of the server that won it."""

    __slots__ = ("_at", "_lease", "job", "manual")

    def __init__(self, job: str, lease: Lease, at: int, *, manual: bool = False) -> None:
        self.job = job
        self.manual = manual
        self._lease = lease
        self._at = at

    @property
    def at(self) -> datetime:
        """The scheduled instant, in UTC: the same on every server, never "now"."""
        return moment(self._at)

    @property
    def since(self) -> datetime | None:
        """The last tick that ended well, None the first time: what happened after it is still to be done."""
        return self._lease.since

    @property
    def fence(self) -> int:
        """The fencing number: greater than that of every run before."""
        return self._lease.fence

    @property
    def attempt(self) -> int:
        """Which start of this tick this is, counted from 1."""
        return self._lease.attempt

    @property
    def lease(self) -> Lease:
        """The lease under which it runs."""
        return self._lease

    @property
    def lost(self) -> bool:
        """Whether the tick is no longer ours: stop working."""
        return self._lease.lost

    def check(self) -> None:
        """Raise `LeaseLost` unless the tick is still ours: call it before what must not happen twice."""
        self._lease.check()

    def guard(self, db: Guardable) -> None:
        """Make the transaction that is open on `db` one that only the newest run can commit."""
        self._lease.guard(db)

    def transaction(self, engine: sqlalchemy.Engine) -> AbstractContextManager[sqlalchemy.Connection]:
        """Begin a guarded transaction; it is committed at the end, unless the tick was lost by then."""
        return self._lease.transaction(engine)

    def __repr__(self) -> str:
        return f"<Tick {self.job} {self.at:%Y-%m-%d %H:%M:%S} UTC fence={self.fence}>"
