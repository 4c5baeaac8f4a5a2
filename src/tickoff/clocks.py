"""The clock that judges deadlines: it never steps, and it runs on while the machine is suspended."""

from __future__ import annotations

import sys
import time

if sys.platform == "linux":

    def elapsed() -> float:
        """Seconds since some fixed instant, suspended time included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    elapsed = time.monotonic
