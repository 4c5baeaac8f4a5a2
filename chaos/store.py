"""A store that chaos befalls: how it is reached, and what can be done to it and to the way there."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from dev.proxy import Mode, Proxy, proxy_to
from dev.servers import Server

from .ground import Disk, Ground, Machine

Undo = Callable[[], None]

Blow = Callable[[int, float], Undo | None]
"""Strikes the n-th of its kind for so many seconds; gives back what ends it, unless it is over at once."""


@dataclass
class Store:
    """A store under chaos."""

    urls: list[str]
    """How members reach it; more than one, so that an outage cuts off some."""
    often: dict[str, Blow] = field(default_factory=dict)
    """What can be done to the way there."""
    seldom: dict[str, Blow] = field(default_factory=dict)
    """What can be done to the store itself."""
    pace: tuple[float, float] = (6, 12)
    """Seconds between two of the latter…"""
    lasting: tuple[float, float] = (0.5, 5)
    """…and how long one of them lasts, where it does."""
    forgets: bool = False
    """Whether a blow makes it lose acknowledged data."""
    records: str = ""
    """The database of the records, reached directly by those who look on."""
    database: str | None = None
    """How members reach that; None: it is the store."""
    machines: tuple[Machine, ...] = ()
    """Where members run, each on one of them."""
    own_clock: bool = True
    """Whether it has a clock apart from the machine's, which cannot be wrong for one process only."""
    counts: Callable[[], dict[str, int]] = dict
    """What it counted itself."""


def behind_proxies(stack: ExitStack, ground: Ground, server: Server) -> Store:
    """A server that members reach by one of two proxies, from machines of their own where there are some."""
    proxies = [stack.enter_context(proxy_to(server.port, ground.host)) for _ in range(2)]
    here = f"{server.host}:{server.port}/"
    urls = [server.url.replace(here, f"{ground.host}:{proxy.port}/") for proxy in proxies]
    return Store(urls, often=on_the_way(ground, proxies), machines=ground.machines)


def on_the_way(ground: Ground, proxies: list[Proxy]) -> dict[str, Blow]:
    """What can happen between members and what runs outside of their machines."""
    blows: dict[str, Blow] = {f"proxy {mode}": _misbehave(proxies, mode) for mode in _MISBEHAVIOURS}
    blows |= {"proxy reset": _reset(proxies), "proxy delay": _delay(proxies)}
    if ground.machines:
        blows["partition"] = partition(ground.machines, ground.host)
    return blows


_MISBEHAVIOURS = (Mode.HOLD, Mode.DROP_REPLIES, Mode.REFUSE)


def partition(machines: tuple[Machine, ...], *others: str) -> Blow:
    """One of the machines loses its way to these addresses."""

    def strike(whom: int, _length: float) -> Undo:
        machine = machines[whom % len(machines)]
        machine.cut_off(*others)
        return machine.join

    return strike


def _misbehave(proxies: list[Proxy], mode: Mode) -> Blow:
    def strike(whom: int, _length: float) -> Undo:
        proxy = proxies[whom % len(proxies)]
        proxy.mode = mode
        return lambda: setattr(proxy, "mode", Mode.PASS)

    return strike


def _reset(proxies: list[Proxy]) -> Blow:
    return lambda whom, _length: proxies[whom % len(proxies)].reset()


def _delay(proxies: list[Proxy]) -> Blow:
    def strike(whom: int, length: float) -> Undo:
        proxy = proxies[whom % len(proxies)]
        proxy.delay = length / 5
        return lambda: setattr(proxy, "delay", 0.0)

    return strike


def restart(servers: list[Server], how: signal.Signals, disk: Disk | None = None) -> Blow:
    """One of the servers ends at once and starts again, for which its disk needs room."""

    def strike(whom: int, _length: float) -> None:
        server = servers[whom % len(servers)]
        server.stop(how)
        if disk is not None:
            disk.empty()
        server.start()

    return strike


def full_disk(disk: Disk, server: Server | None = None) -> dict[str, Blow]:
    """No room is left for a while; a server that died of it is started again. Nothing, without a limit."""

    def strike(_whom: int, _length: float) -> Undo:
        disk.fill()
        return lambda: _make_room(disk, server)

    return {"disk full": strike} if disk.limited else {}


def _make_room(disk: Disk, server: Server | None) -> None:
    disk.empty()
    if server is not None and server.process.poll() is not None:
        server.start()
