"""Two clocks: one that judges deadlines (it never steps, and runs on while suspended), and the wall's."""

from __future__ import annotations

import sys
import time

if sys.platform == "linux":

    def elapsed() -> float:
        """Seconds since some fixed instant, suspended time included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    elapsed = time.monotonic


def wall() -> int:
    """The time as this machine has it, in ms since the epoch; it may be wrong, so it decides nothing."""
    return time.time_ns() // 1_000_000
