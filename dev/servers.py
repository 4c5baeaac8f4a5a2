"""Private Redis, PostgreSQL, PgBouncer and MariaDB from Debian: own port and folder, ended by pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START_LIMIT = 60.0


class MissingServer(Exception):
    """A server's binary is not installed."""


@dataclass
class Server:
    """A running server: what to call it by, and how to stop, freeze and restart it."""

    name: str
    url: str
    port: int
    command: list[str]
    folder: Path
    ready: Callable[[], bool]
    user: str | None = None
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start the process and wait until it answers."""
        log = (self.folder / f"{self.name}.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [*_dies_with_us(), *self.command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                group=self.user,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_LIMIT
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = (self.folder / f"{self.name}.log").read_text(errors="replace")
                raise RuntimeError(f"{self.name} did not start:\n{text[-2000:]}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process by its pid."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def freeze(self) -> None:
        """Stop the process as a dead machine would be: connections stay, nothing answers."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.killpg(self.process.pid, signal.SIGCONT)


@contextmanager
def redis_server(
    *options: str,
    port: int = 0,
    host: str = "127.0.0.1",
    inside: Sequence[str] = (),
    disk: Path | None = None,
) -> Iterator[Server]:
    """A Redis without persistence; `inside` is the command that takes it into a network of its own."""
    with own_folder(disk) as folder:
        port = port or free_port()
        own = ["--port", str(port), "--bind", host, "--protected-mode", "no", "--save", ""]
        command = [*inside, installed("redis-server"), *own, "--dir", str(folder), *options]
        url = f"redis://{host}:{port}/0"
        server = Server("redis", url, port, command, folder, lambda: answers_ping(host, port), host=host)
        yield from running(server)


@contextmanager
def postgres_server(*options: str, fsync: bool = False, disk: Path | None = None) -> Iterator[Server]:
    """A PostgreSQL with the database `postgres`; it refuses to run as root, so root lends it another user."""
    binary = installed("postgres", "/usr/lib/postgresql/*/bin")
    user = _ordinary_user()
    with own_folder(disk, user) as folder:
        data, port = folder / "data", free_port()
        subprocess.run(
            [
                Path(binary).with_name("initdb"),
                "-D",
                data,
                "-A",
                "trust",
                "-U",
                "postgres",
                "--no-sync",
                "-E",
                "UTF8",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            user=user,
            group=user,
        )
        settings = [f"port={port}", f"unix_socket_directories={folder}", "listen_addresses=127.0.0.1"]
        settings += ["max_connections=200", f"fsync={'on' if fsync else 'off'}", *options]
        command = [binary, "-D", str(data), *(part for s in settings for part in ("-c", s))]
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        server = Server("postgres", url, port, command, folder, lambda: _postgres_ready(url), user)
        yield from running(server, signal.SIGINT)


@contextmanager
def pgbouncer(behind: Server, mode: str, sessions: int = 2) -> Iterator[Server]:
    """A PgBouncer before a PostgreSQL, with few sessions, so that clients meet on them; no root either."""
    binary = installed("pgbouncer", "/usr/sbin")
    user = _ordinary_user()
    with own_folder(user=user) as folder:
        port = free_port()
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={behind.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder}/users\n"
            f"pool_mode = {mode}\ndefault_pool_size = {sessions}\nmax_client_conn = 200\n"
        )
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        command = [binary, str(folder / "ini")]
        server = Server("pgbouncer", url, port, command, folder, lambda: _postgres_ready(url), user)
        yield from running(server)


@contextmanager
def mariadb_server(*options: str, disk: Path | None = None) -> Iterator[Server]:
    """A MariaDB with an empty database `tickoff`, and root without a password.

    With a folder of its own for temporary tables: one that starts deletes all it finds there, and another one
    that is just making such a table dies of that.
    """
    binary = installed("mariadbd", "/usr/sbin")
    as_root = ["--user=root"] if os.getuid() == 0 else []
    with own_folder(disk) as folder:
        data, port = folder / "data", free_port()
        homes = [f"--datadir={data}", f"--tmpdir={folder}"]
        install = [installed("mariadb-install-db"), "--no-defaults", *homes]
        subprocess.run(
            [*install, "--auth-root-authentication-method=normal", "--skip-test-db", *as_root],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        command = [binary, "--no-defaults", *as_root, *homes, f"--socket={folder}/socket"]
        command += [
            f"--port={port}",
            "--bind-address=127.0.0.1",
            f"--pid-file={folder}/pid",
            "--skip-log-bin",
        ]
        command += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", *options]
        url = f"mysql://root@127.0.0.1:{port}/tickoff"
        server = Server("mariadb", url, port, command, folder, lambda: _mariadb_ready(port))
        yield from running(server)


def free_port() -> int:
    """A TCP port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def running(server: Server, how: signal.Signals = signal.SIGTERM) -> Iterator[Server]:
    """Start it, and end it in any case."""
    try:
        server.start()
        yield server
    finally:
        if hasattr(server, "process"):
            server.stop(how)


@contextmanager
def own_folder(disk: Path | None = None, user: str | None = None) -> Iterator[Path]:
    """A folder for a while, on that disk, owned by that user."""
    path = Path(tempfile.mkdtemp(prefix="tickoff-", dir=disk))
    try:
        if user is not None:
            shutil.chown(path, user)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def installed(name: str, *places: str) -> str:
    """Where a binary is: on the path, or in one of these places."""
    found = shutil.which(name)
    if found:
        return found
    for place in places:
        folder, _, rest = place.partition("*")
        candidates = sorted(Path(folder).glob(f"*{rest}/{name}")) if rest else [Path(place) / name]
        existing = [candidate for candidate in candidates if candidate.exists()]
        if existing:
            return str(existing[-1])
    raise MissingServer(f"{name} is not installed; run dev/install-servers as root")


def _ordinary_user() -> str | None:
    if os.getuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _dies_with_us() -> list[str]:
    """Debian's setpriv makes the kernel end the server should the tests be killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def answers_ping(host: str, port: int) -> bool:
    """Whether a Redis is there."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1) as probe:
        probe.sendall(b"PING\r\n")
        return probe.recv(16).startswith(b"+PONG")
    return False


def _postgres_ready(url: str) -> bool:
    import psycopg

    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2).close()
        return True
    return False


def _mariadb_ready(port: int) -> bool:
    import pymysql

    with contextlib.suppress(pymysql.err.MySQLError):
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=2)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS tickoff CHARACTER SET utf8mb4")
        return True
    return False
