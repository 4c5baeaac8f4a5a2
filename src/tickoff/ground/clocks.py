"""Two clocks: one that judges deadlines (it never steps, and runs on while suspended), and the wall's."""

from __future__ import annotations

from .world import world


def elapsed() -> float:
    """Seconds since some fixed instant, suspended time included."""
    return world().elapsed()


def wall() -> int:
    """The time as this machine has it, in ms since the epoch; it may be wrong, so it decides nothing."""
    return world().wall()


def sleep(seconds: float) -> None:
    """Wait, while others go on."""
    world().sleep(seconds)
