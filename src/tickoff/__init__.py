"""Every tick once. Every row once. Leases, ticks and records for a fleet, on the store it already has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import Tickoff
    from .errors import Defer, LeaseLost, LockHeld, Pause, Reject, StaleFence, StoreUnreachable, TickoffError
    from .leases.lease import Lease
    from .model import Ran, Skipped
    from .ticks.tick import Tick
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
    "Tick",
    "Tickoff",
    "TickoffError",
    "upsert",
]

# Loaded when first asked for: a crontab line starts a process each time, and uses little of all this.
_ELSEWHERE = {
    "Lease": ".leases.lease",
    "Ran": ".model",
    "Skipped": ".model",
    "Tick": ".ticks.tick",
    "Tickoff": ".app",
    "upsert": ".writes",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, ".errors"), __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
