"""Every tick once. Every row once. Leases for a fleet, on the Redis or the database it already has."""

from .app import Tickoff
from .errors import (
    Defer,
    LeaseLost,
    LockHeld,
    Pause,
    Reject,
    StaleFence,
    StoreUnreachable,
    TickoffError,
)
from .lease import Lease
from .model import Ran, Skipped
from .writes import upsert

__all__ = [
    "Defer",
    "Lease",
    "LeaseLost",
    "LockHeld",
    "Pause",
    "Ran",
    "Reject",
    "Skipped",
    "StaleFence",
    "StoreUnreachable",
    "Tickoff",
    "TickoffError",
    "upsert",
]
