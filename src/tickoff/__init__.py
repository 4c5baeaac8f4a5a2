"""Every tick once. Every row once. Leases for a fleet, on the Redis or the database it already has."""

from .app import Tickoff
from .errors import LeaseLost, LockHeld, StoreUnreachable, TickoffError
from .lease import Lease
from .model import Ran, Skipped

__all__ = [
    "Lease",
    "LeaseLost",
    "LockHeld",
    "Ran",
    "Skipped",
    "StoreUnreachable",
    "Tickoff",
    "TickoffError",
]
