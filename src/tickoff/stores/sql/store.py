"""The SQL store: entries are rows, a swap is an UPDATE guarded by the row's version."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from ...errors import ConfigError, StoreUnreachable
from ...lending import LATE, Loan
from ...model import RUNS_KEPT, Entry, Note, Outcome, Run
from ..base import IO_LIMIT, Finding
from ..cas import CasStore
from . import schema
from .dialects import Dialect, dialect_of
from .engines import EngineSource
from .forking import amid_sql
from .health import examine
from .statements import ENTRY_FIELDS, RUN_FIELDS, Statements

_FLAGS = ("manual", "open", "paused", "scheduled")

_NO_FILE = "unable to open database file"

_PRUNE_EVERY = 32
"""One settle in so many prunes the history of its name."""


class SqlStore(CasStore):
    """Leases in two tables of a database; the schema is made on first use."""

    purge_every = 3600.0
    """Seconds between two purges of unused names by one process."""

    def __init__(self, source: EngineSource, limit: float = IO_LIMIT) -> None:
        self._source = source
        self._limit = limit
        with amid_sql:
            self.engine = source.open(limit)
            self._dialect = dialect_of(self.engine)
            self._statements = Statements(self._dialect)
        self._ready = False
        self._purged: float | None = None

    @property
    def address(self) -> str:
        """Where the database is, without the password."""
        return self._source.address

    @property
    def dialect(self) -> Dialect:
        """What is particular to this database."""
        return self._dialect

    def load(self, names: Iterable[str]) -> tuple[int, Mapping[str, Entry]]:
        """The database's time, and the rows there are for these names, in one statement."""
        with self.connection() as connection:
            rows = connection.execute(self._statements.load, {"names": list(names)}).all()
        entries = [
            entry_of(dict(zip(ENTRY_FIELDS, row[1:], strict=True))) for row in rows if row[1] is not None
        ]
        return int(rows[0][0]), {entry.name: entry for entry in entries}

    def swap(self, old: Entry, new: Entry, runs: Sequence[Run]) -> bool:
        """Write the row if its version is still the old one, and the runs along with it."""
        with self.connection() as connection:
            if not runs:
                swapped = self._write(connection, old, new)
            else:
                with self._dialect.writing(connection):
                    swapped = self._write(connection, old, new)
                    if swapped:
                        self._record(connection, runs)
        self.purge_sometimes()
        return swapped

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, sorted."""
        name = schema.lease.c.name
        # Not LIKE: on MariaDB it passes over what lies beyond U+FFFF.
        query = sa.select(name).where(sa.func.substr(name, 1, len(prefix)) == prefix)
        with self.connection() as connection:
            found = connection.execute(query).scalars().all()
        return sorted(n for n in found if n.startswith(prefix))  # to MariaDB, "a " equals "a"

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        with self.connection() as connection:
            return [_run_of(row) for row in self._history(connection, name, limit, 0)]

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on."""
        wanted = {"names": list(names), "tick_": since}
        with self.connection() as connection:
            return [_run_of(row) for row in connection.execute(self._statements.runs, wanted)]

    def examine(self) -> list[Finding]:
        """What is amiss with this database."""
        with self.bare_connection() as connection:
            return examine(self.address, connection)

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board for `life` ms; says the time."""
        values = {"board_": board, "key_": key, "text_": text, "life_": life}
        with self.connection() as connection:
            connection.execute(self._statements.post, values)
            return int(connection.execute(self._statements.clock).scalar_one())

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        with self.connection() as connection:
            return [Note(*row) for row in connection.execute(self._statements.notes, {"board_": board})]

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        with self.connection() as connection:
            return connection.execute(self._statements.strike, {"board_": board, "key_": key}).rowcount == 1

    def lend(self, name: str, window: int, limit: int, wanted: int) -> Loan:
        """Lend up to `wanted` of the calls that a rate allows in each window."""
        asked = {"window_": window, "limit_": limit, "wanted_": wanted, "late_": limit // LATE}
        with self.connection() as connection, self._dialect.writing(connection):
            connection.execute(self._statements.lend, {"name_": name, **asked})
            told = connection.execute(self._statements.lent, {"name_": name, "window_": window}).one()
            return Loan(*map(int, told))

    def now(self) -> int:
        """The database's clock."""
        with self.connection() as connection:
            return int(connection.execute(self._statements.clock).scalar_one())

    def within(self, limit: float) -> SqlStore:
        """The same database over connections of its own."""
        return type(self)(self._source, limit)

    def migrate(self) -> str:
        """Make or upgrade the tables; safe when several servers do it at once."""
        with self.bare_connection() as connection:
            current = schema.stored_version(connection)
            if current < schema.MIGRATIONS[-1].version:
                with self._dialect.schema_lock(connection):
                    done = schema.upgrade(connection)
            else:
                self._refuse_newer(current)
                done = []
        steps = ", ".join(f"version {step.version} ({step.summary})" for step in done)
        return f"{self.address}: {'made ' + steps if done else f'up to date at version {current}'}"

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent and open new ones."""
        self.engine.dispose(close=False)

    def close(self) -> None:
        """Close the connections."""
        with amid_sql:
            self.engine.dispose()

    @contextmanager
    def connection(self) -> Iterator[sa.Connection]:
        """A connection to a database whose schema is known to be right."""
        self.ensure_schema()
        with self.bare_connection() as connection:
            yield connection

    def ensure_schema(self) -> None:
        """Make the tables on first use; refuse those of another version."""
        if not self._ready:
            self._check_schema()
            self._ready = True

    @contextmanager
    def bare_connection(self) -> Iterator[sa.Connection]:
        """A connection, whatever the schema."""
        try:
            with amid_sql, self.engine.connect() as connection:
                yield connection
        except TypeError as error:
            raise ConfigError(
                f"the URL of {self.address} has an option its driver does not know: {error}"
            ) from error
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            cause = getattr(error, "orig", None) or error
            self.saw(cause)
            raise StoreUnreachable(f"{self.address} did not answer: {_in_words(cause)}") from cause

    def saw(self, error: BaseException) -> None:  # noqa: ARG002 - for dialects that can do more about it
        """Take note of what the driver complained about; should the tables be gone, they are made anew."""
        self._ready = False

    def _check_schema(self) -> None:
        with self.bare_connection() as connection:
            current = schema.stored_version(connection)
        if current == 0:
            self.migrate()
        elif current < schema.MIGRATIONS[-1].version:
            raise ConfigError(
                f"{self.address} has version {current} of Tickoff's tables, this Tickoff needs "
                f"{schema.MIGRATIONS[-1].version}; run: tickoff migrate"
            )
        self._refuse_newer(current)

    def _refuse_newer(self, current: int) -> None:
        if current > schema.MIGRATIONS[-1].version:
            raise ConfigError(
                f"{self.address} has version {current} of Tickoff's tables, made by a newer Tickoff; "
                "upgrade this one"
            )

    def _write(self, connection: sa.Connection, old: Entry, new: Entry) -> bool:
        if old.version == 0:
            changed = connection.execute(self._statements.insert_entry, row_of(new))
        else:
            guard = {"name_": old.name, "old_version": old.version}
            changed = connection.execute(self._statements.update_entry, row_of(new) | guard)
        return changed.rowcount == 1

    def _record(self, connection: sa.Connection, runs: Sequence[Run]) -> None:
        """Write history lines once each; only a `crashed`, which was a guess, gives way to the truth."""
        for run in runs:
            if run.outcome is Outcome.LOST:
                key = {"name_": run.name, "tick_": run.tick, "fence_": run.fence}
                connection.execute(self._statements.delete_guess, key)
            connection.execute(self._statements.insert_run, asdict(run) | {"manual": int(run.manual)})
            if prunes(run.fence):
                self._prune(connection, run.name)

    def _prune(self, connection: sa.Connection, name: str) -> None:
        oldest_kept = self._history(connection, name, 1, RUNS_KEPT - 1).first()
        if oldest_kept is not None:
            key = {"name_": name, "tick_": _run_of(oldest_kept).tick}
            connection.execute(self._statements.prune_runs, key)

    def _history(self, connection: sa.Connection, name: str, limit: int, offset: int) -> sa.CursorResult[Any]:
        window = {"name_": name, "limit": limit, "offset": offset}
        return connection.execute(self._statements.history, window)

    def purge_sometimes(self) -> None:
        """Once in a while, drop names that have no schedule and were not used for a week."""
        if self._purged is not None and time.monotonic() - self._purged < self.purge_every:
            return
        self._purged = time.monotonic()
        with self.connection() as connection:
            names = connection.execute(self._statements.unused_names).scalars().all()
            if names:
                connection.execute(self._statements.delete_unused, {"names": names})
                connection.execute(self._statements.delete_runs, {"names": names})
            connection.execute(self._statements.delete_old_notes)
            connection.execute(self._statements.delete_old_loans)


def prunes(fence: int) -> bool:
    """Whether the settlement of a run with this fence prunes the history of its name."""
    return fence % _PRUNE_EVERY == 0


def entry_of(values: dict[str, Any]) -> Entry:
    """A row as an entry."""
    for flag in _FLAGS:
        values[flag] = bool(values[flag])
    withdrawn = values["withdrawn"]
    values["withdrawn"] = tuple((t, until) for t, until in json.loads(withdrawn)) if withdrawn else ()
    return Entry(**values)


def row_of(entry: Entry) -> dict[str, Any]:
    """An entry as a row."""
    values: dict[str, Any] = {name: getattr(entry, name) for name in ENTRY_FIELDS}
    for flag in _FLAGS:
        values[flag] = int(values[flag])
    values["withdrawn"] = json.dumps(entry.withdrawn) if entry.withdrawn else ""
    return values


def _run_of(row: sa.Row[Any]) -> Run:
    values = dict(zip(RUN_FIELDS, row, strict=True))
    return Run(**{**values, "outcome": Outcome(values["outcome"]), "manual": bool(values["manual"])})


def _in_words(error: BaseException) -> str:
    """What SQLite says of a folder that is not there names neither the cause nor the cure."""
    words = in_one_line(error)
    return f"{words}; its folder has to be there, and writable" if words == _NO_FILE else words


def in_one_line(error: BaseException) -> str:
    """The driver's own words: SQLAlchemy's would add the statement and its values."""
    return " ".join(str(error).split()) or type(error).__name__
