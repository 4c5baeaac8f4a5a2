"""The stage: a folder, a database, the world outside and ten servers; all of it is gone afterwards."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import sqlalchemy as sa

from ...app import Tickoff
from ...errors import ConfigError, StoreUnreachable
from ...ground.clocks import wall
from ...names import check_namespace, full_name
from ...stores.sql.engines import UrlSource, database_of
from ..interrupts import held_back
from . import application, outside
from .fleet import Fleet
from .journal import Journal
from .processes import Process
from .tidy import forget

T = TypeVar("T")

_LOOK = 0.04
_LIMIT = 45.0
"""Seconds that something may take that takes five on a machine with nothing else to do."""

_SQL = ("postgres", "mysql", "mariadb")


class Missed(Exception):
    """Something that had to happen did not; the show ends, and the verdict says so."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the acts are played with."""

    jobs: Tickoff
    namespace: str
    engine: sa.Engine
    journal: Journal
    fleet: Fleet
    ahead: int
    """What the store's clock is ahead of ours, in ms."""

    def now(self) -> int:
        """The store's time, in ms."""
        return wall() + self.ahead

    def until(self, look: Callable[[], T | None], missed: str, meanwhile: Callable[[], None]) -> T:
        """Look until there is something to be seen; nothing for long is the end of the show."""
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            meanwhile()
            time.sleep(_LOOK)
        raise Missed(missed)

    def lease_left(self, job: str, fence: int) -> float:
        """Seconds until the lease with this fence ends, as the store has it."""
        answer = self.jobs.store.read([full_name(self.namespace, job)])[0]
        return max(0, answer.entry.until - answer.now) / 1000 if answer.entry.fence == fence else 0.0

    def select(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        """Ask the database."""
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())


@contextmanager
def set_up(url: str | None, namespace: str | None) -> Iterator[Stage]:
    """Everything, on the given store or on SQLite files; no signal tears a part of it off."""
    stack = ExitStack()
    with _reaching():
        try:
            with held_back():
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="tickoff-demo-")))
                stack.enter_context(_environment(_named(url, namespace, folder)))
            stage = _reached(folder, stack)
            with held_back():
                _populate(stage, stack, folder)
            yield stage
        finally:
            with held_back():
                stack.close()


def _named(url: str | None, namespace: str | None, folder: Path) -> dict[str, str]:
    """What the servers are told; the namespace is new, so that two demos on one store do not meet."""
    _refuse_memory(url or "")
    own = f"demo-{secrets.token_hex(4)}"
    return {
        "TICKOFF_URL": url or f"sqlite:///{folder / 'tickoff.db'}",
        "TICKOFF_NAMESPACE": "-".join(part for part in (check_namespace(namespace), own) if part),
        "TICKOFF_DATABASE": _database(url or "", folder),
        application.TABLES: f"tickoff_{own.replace('-', '_')}",
    }


def _database(url: str, folder: Path) -> str:
    """Where the tables are: on the store when that is a server with SQL, else in a SQLite file."""
    target = url if url.startswith(_SQL) else f"sqlite:///{folder / 'shop.db'}"
    source = database_of(target)
    assert isinstance(source, UrlSource)  # noqa: S101 - the source of a URL is one
    return source.url.render_as_string(hide_password=False)


def _refuse_memory(url: str) -> None:
    if url.startswith("memory:"):
        raise ConfigError(
            "memory:// is seen by one process only and the demo starts ten; leave --url out, or name a server"
        )


def _reached(folder: Path, stack: ExitStack) -> Stage:
    """The stage, still empty; a wrong URL or a dead server is told here, once, and not by ten processes."""
    jobs, namespace = Tickoff(), os.environ["TICKOFF_NAMESPACE"]
    stack.callback(jobs.close)
    ahead = jobs.store.now() - wall()
    engine = sa.create_engine(os.environ["TICKOFF_DATABASE"])
    stack.callback(engine.dispose)
    log = folder / "outside.log"
    log.touch()
    fleet = Fleet(folder)
    return Stage(jobs, namespace, engine, Journal(log), fleet, ahead)


def _populate(stage: Stage, stack: ExitStack, folder: Path) -> None:
    """Tables, the world outside, the servers; whatever begins here ends with the stack, last first."""
    stack.callback(forget, stage.jobs.store, os.environ["TICKOFF_URL"], stage.namespace.rpartition("-")[2])
    for table in (application.imported(), application.contacts()):
        stack.callback(table.drop, stage.engine, checkfirst=True)
        table.create(stage.engine)
    api = Process("outside", "api", [str(stage.journal.path)], folder)
    stack.callback(_end, api)
    os.environ[outside.ADDRESS] = api.hear(time.monotonic() + _LIMIT)
    stack.callback(stage.fleet.stop)
    stage.fleet.start()


@contextmanager
def _reaching() -> Iterator[None]:
    """A database that went away is an outage like any other, and no bug."""
    try:
        yield
    except sa.exc.OperationalError as error:
        raise StoreUnreachable("the database of the demo went away; its tables may be left") from error


def _end(process: Process) -> None:
    process.dismiss()
    process.end(time.monotonic() + 1.0)


@contextmanager
def _environment(named: dict[str, str]) -> Iterator[None]:
    """Set for us and for the processes we start, as an operator would."""
    before = dict(os.environ)
    os.environ.update(named)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
