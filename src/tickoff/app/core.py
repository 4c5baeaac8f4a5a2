"""What every part of `Tickoff` stands on: the store, the namespace, and how a fork or an end is met."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ..ground import forks
from ..ground.eventloop import EventLoop
from ..leases.referee import Referee
from ..names import check_namespace, full_name
from ..stores import open_store
from ..stores.base import LeaseStore
from .databases import check_database

if TYPE_CHECKING:
    import redis
    import sqlalchemy

_log = logging.getLogger("tickoff")


class Core:
    """One store, opened at first use, and the names this application uses on it."""

    def __init__(
        self,
        url: str | sqlalchemy.Engine | redis.Redis | LeaseStore | None = None,
        *,
        database: str | sqlalchemy.Engine | None = None,
        namespace: str | None = None,
    ) -> None:
        check_database(database)
        self._url = url
        self._database = database
        self._guard = threading.Lock()
        self._store = None if url is None else open_store(url)
        self._namespace = None if namespace is None else check_namespace(namespace)
        self._referee: Referee | None = None
        self._eventloop = EventLoop()
        forks.tell(self)

    @property
    def store(self) -> LeaseStore:
        """The store that referees, for those who look deeper."""
        return self._ready().store

    def close(self) -> None:
        """Stop the threads and close the connections; leases still held end by their TTL."""
        with self._guard:
            referee, self._referee = self._referee, None
        if referee is not None:
            referee.close()

    def after_fork(self) -> None:
        """Start anew in a child: the lock may be held by a thread that is gone."""
        self._guard = threading.Lock()
        self._eventloop.after_fork()

    def __repr__(self) -> str:
        where = "TICKOFF_URL" if self._store is None else self._store.address
        named = f", namespace={self._namespace!r}" if self._namespace else ""
        return f"Tickoff({where!r}{named})"

    def _full(self, name: str) -> str:
        if self._namespace is None:
            self._namespace = check_namespace(os.environ.get("TICKOFF_NAMESPACE"))
        return full_name(self._namespace, name)

    def _ready(self) -> Referee:
        if self._referee is not None:
            return self._referee
        with self._guard:
            if self._store is None:
                self._store = open_store(url_from_environment())
            if self._referee is None:
                self._referee = Referee(self._store)
            return self._referee


def url_from_environment() -> str:
    """`TICKOFF_URL`, or a SQLite file in the working folder, with a warning that it ends at this machine."""
    url = os.environ.get("TICKOFF_URL")
    if url:
        return url
    path = Path.cwd() / "tickoff.db"
    _log.warning("no URL given: %s coordinates this machine only; set TICKOFF_URL", path)
    return f"sqlite:///{path}"
