"""The statements of the SQL store, built once per engine: building one costs more than running it."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from ...model import UNSCHEDULED_LIFE, Entry, Outcome, Run
from . import schema
from .dialects import Dialect

ENTRY_FIELDS = [field.name for field in fields(Entry)]
RUN_FIELDS = [field.name for field in fields(Run)]
ENTRY_COLUMNS = [schema.lease.c[name] for name in ENTRY_FIELDS]
RUN_COLUMNS = [schema.run.c[name] for name in RUN_FIELDS]


class Statements:
    """Every statement by name, for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._lease = schema.lease.c
        self._run = schema.run.c

    @cached_property
    def clock(self) -> sa.Select[Any]:
        """The clock alone."""
        return sa.select(self._dialect.clock)

    @cached_property
    def load(self) -> sa.Select[Any]:
        """The clock, and the rows for `names` beside it; with no rows, the clock alone."""
        clock = sa.select(self._dialect.clock.label("now")).subquery("clock")
        wanted = self._lease.name.in_(sa.bindparam("names", expanding=True))
        return sa.select(clock.c.now, *ENTRY_COLUMNS).select_from(clock.outerjoin(schema.lease, wanted))

    @cached_property
    def insert_entry(self) -> sa.Insert:
        """A new row, unless there is one; its row count tells."""
        insert = self._dialect.insert_if_absent(schema.lease).values(_binds(ENTRY_FIELDS))
        return insert.execution_options(preserve_rowcount=True)

    @cached_property
    def update_entry(self) -> sa.Update:
        """The row anew, if its version is still `old_version`."""
        mine = (self._lease.name == sa.bindparam("name_")) & (
            self._lease.version == sa.bindparam("old_version")
        )
        changed = [name for name in ENTRY_FIELDS if name != "name"]
        return sa.update(schema.lease).where(mine).values(_binds(changed))

    @cached_property
    def unused_names(self) -> sa.Select[Any]:
        """Names that have no schedule and were not used for a week."""
        return sa.select(self._lease.name).where(self._unused).limit(1000)

    @cached_property
    def delete_unused(self) -> sa.Delete:
        """Those of `names` that are still unused."""
        return sa.delete(schema.lease).where(
            self._lease.name.in_(sa.bindparam("names", expanding=True)), self._unused
        )

    @cached_property
    def insert_run(self) -> sa.Insert:
        """A line of history, unless it is there."""
        return self._dialect.insert_if_absent(schema.run).values(_binds(RUN_FIELDS))

    @cached_property
    def delete_guess(self) -> sa.Delete:
        """The line that took a run for crashed."""
        run = self._run
        key = (
            (run.name == sa.bindparam("name_"))
            & (run.tick == sa.bindparam("tick_"))
            & (run.fence == sa.bindparam("fence_"))
        )
        return sa.delete(schema.run).where(key, run.outcome == Outcome.CRASHED)

    @cached_property
    def history(self) -> sa.Select[Any]:
        """The latest lines of a name."""
        return (
            sa.select(*RUN_COLUMNS)
            .where(self._run.name == sa.bindparam("name_"))
            .order_by(self._run.tick.desc(), self._run.fence.desc())
            .limit(sa.bindparam("limit"))
            .offset(sa.bindparam("offset"))
        )

    @cached_property
    def runs(self) -> sa.Select[Any]:
        """The lines of `names` from `tick_` on."""
        wanted = self._run.name.in_(sa.bindparam("names", expanding=True))
        return sa.select(*RUN_COLUMNS).where(wanted, self._run.tick >= sa.bindparam("tick_"))

    @cached_property
    def prune_runs(self) -> sa.Delete:
        """The lines of a name older than `tick_`."""
        return sa.delete(schema.run).where(
            self._run.name == sa.bindparam("name_"), self._run.tick < sa.bindparam("tick_")
        )

    @cached_property
    def delete_runs(self) -> sa.Delete:
        """All lines of `names`."""
        return sa.delete(schema.run).where(self._run.name.in_(sa.bindparam("names", expanding=True)))

    @cached_property
    def post(self) -> sa.Insert:
        """A note, over the one with the same key."""
        binds: dict[str, Any] = {name: sa.bindparam(f"{name}_") for name in ("board", "key", "text")}
        values = binds | {"until": self._dialect.clock + sa.bindparam("life_", type_=sa.BigInteger)}
        return self._dialect.upsert(schema.note, values, ("text", "until"))

    @cached_property
    def notes(self) -> sa.Select[Any]:
        """The notes of a board that are still good."""
        note = schema.note.c
        good = (note.board == sa.bindparam("board_")) & (note.until > self._dialect.clock)
        return sa.select(note.key, note.text, note.until).where(good).order_by(note.key)

    @cached_property
    def strike(self) -> sa.Delete:
        """One note, while it is good."""
        note = schema.note.c
        this = (note.board == sa.bindparam("board_")) & (note.key == sa.bindparam("key_"))
        return sa.delete(schema.note).where(this, note.until > self._dialect.clock)

    @cached_property
    def delete_old_notes(self) -> sa.Delete:
        """The notes that are good no more."""
        return sa.delete(schema.note).where(schema.note.c.until <= self._dialect.clock)

    @property
    def _unused(self) -> sa.ColumnElement[bool]:
        row, now = self._lease, self._dialect.clock
        idle = (row.used <= now - UNSCHEDULED_LIFE) & (row.until <= now)
        return idle & (row.scheduled == 0) & (row.paused == 0)


def _binds(names: list[str]) -> dict[str, sa.BindParameter[Any]]:
    return {name: sa.bindparam(name) for name in names}
