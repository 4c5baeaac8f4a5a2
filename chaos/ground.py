"""What a run stands on: where the kernel lets us, a network of machines that can be parted, and a small disk.

Both live in namespaces of our own and are gone with them; nothing of this machine's is changed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ENTERED = "TICKOFF_CHAOS_NAMESPACES"
_TOOLS = ("unshare", "nsenter", "ip", "nft", "mount")
_NAMES = Path("/run/netns")
_SUBNET = "10.77.0"
_NEW_NETWORK = 0x40000000
_ON_DEATH_OF_PARENT = 1

_PAGES = bytes(1 << 16)

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Machine:
    """A network stack of its own, with a cable to the others."""

    name: str
    address: str

    @property
    def path(self) -> str:
        """The namespace."""
        return str(_NAMES / self.name)

    @property
    def inside(self) -> list[str]:
        """What to put before a command so that it runs there."""
        return ["nsenter", f"--net={self.path}"]

    def cut_off(self, *others: str) -> None:
        """From now on nothing arrives from these addresses, and nothing gets there; nobody is told."""
        for other in others:
            _run(*self.inside, "nft", "add", "rule", "inet", "chaos", "in", "ip", "saddr", other, "drop")
            _run(*self.inside, "nft", "add", "rule", "inet", "chaos", "out", "ip", "daddr", other, "drop")

    def join(self) -> None:
        """All packets pass again."""
        _run(*self.inside, "nft", "flush", "table", "inet", "chaos")


class Disk:
    """A disk of so many megabytes; a plain folder, which is never full, where nothing may be mounted."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self.limited = isolated()
        self._ballast = folder / "ballast"
        folder.mkdir()
        if self.limited:
            _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tickoff-chaos", str(folder))

    def fill(self) -> None:
        """Leave no room."""
        room = os.statvfs(self.folder)
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_frsize // 2))
            while True:  # what others write meanwhile takes part of it
                file.seek(0, os.SEEK_END)
                file.write(_PAGES)

    def empty(self) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)


@dataclass(frozen=True)
class Ground:
    """Where a store is put up."""

    folder: Path
    host: str
    """The address at which every machine finds what runs outside of them."""
    machines: tuple[Machine, ...]

    def disk(self, megabytes: int) -> Disk:
        """A disk for a store."""
        return Disk(self.folder / "disk", megabytes)


def go_into_namespaces(arguments: list[str]) -> str:
    """Start anew in namespaces of our own, and do not return; or why that cannot be."""
    if isolated():
        return ""
    why = _why_not()
    if not why:
        os.environ[_ENTERED] = "yes"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, "-m", "chaos", *arguments])
    return why


def isolated() -> bool:
    """Whether network and mounts are our own."""
    return _ENTERED in os.environ


def ground(folder: Path, machines: int = 3) -> Ground:
    """Lay the cables, where the network is our own."""
    if not isolated():
        return Ground(folder, LOOPBACK, ())
    for command in (
        "ip link set lo up",
        "ip link add chaos type bridge",
        f"ip addr add {_SUBNET}.1/24 dev chaos",
        "ip link set chaos up",
    ):
        _run(*command.split())
    _NAMES.mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "tickoff-chaos", str(_NAMES))  # names that nobody else sees
    return Ground(folder, f"{_SUBNET}.1", tuple(_machine(i) for i in range(1, machines + 1)))


def move_into(namespace: str) -> None:
    """Take this process, and all threads it starts from now on, into the network of a machine."""
    with Path(namespace).open() as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ON_DEATH_OF_PARENT, signal.SIGKILL)


def _machine(number: int) -> Machine:
    one = Machine(f"chaos{number}", f"{_SUBNET}.{10 + number}")
    for command in (
        f"ip netns add {one.name}",
        f"ip link add to{number} type veth peer name eth0 netns {one.name}",
        f"ip link set to{number} master chaos up",
        f"ip -n {one.name} addr add {one.address}/24 dev eth0",
        f"ip -n {one.name} link set eth0 up",
        f"ip -n {one.name} link set lo up",
    ):
        _run(*command.split())
    table = (
        "add table inet chaos; "
        "add chain inet chaos in { type filter hook input priority 0; }; "
        "add chain inet chaos out { type filter hook output priority 0; }"
    )
    _run(*one.inside, "nft", table)
    return one


def _why_not() -> str:
    if os.getuid() != 0:
        return "only root may make namespaces"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    trial = "ip link add chaos type bridge && mount -t tmpfs none /mnt && nft add table inet chaos"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", trial], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else f"refused: {tried.stderr.decode(errors='replace').strip()}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
