"""The services of a process, started together, quieted on a signal, and ended within a grace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .ground.clocks import elapsed, sleep

_LOOK = 0.02
"""Seconds between two looks at whether what runs has ended."""

_FAREWELL = 1.0
"""Seconds that work which was told to stop has to do so, before it is left behind."""


class Service(Protocol):
    """Something that works in threads of its own between start and stop."""

    def start(self) -> None:
        """Begin; raises `ConfigError` for what cannot work."""
        ...

    def quiet(self) -> None:
        """Take on nothing new, and give back what was not begun."""
        ...

    def busy(self) -> bool:
        """Whether something begun is still running."""
        ...

    def stop(self) -> None:
        """Cancel what still runs, and end the threads."""
        ...


def wind_down(services: Sequence[Service], grace: float, hurry: Callable[[], bool]) -> None:
    """Take on nothing new, let what runs end within the grace unless there is a hurry, then cancel it."""
    for service in services:
        service.quiet()
    _wait(services, grace, hurry)
    for service in services:
        service.stop()
    _wait(services, _FAREWELL, lambda: False)


def _wait(services: Sequence[Service], limit: float, hurry: Callable[[], bool]) -> None:
    deadline = elapsed() + limit
    while elapsed() < deadline and not hurry() and any(service.busy() for service in services):
        sleep(_LOOK)
