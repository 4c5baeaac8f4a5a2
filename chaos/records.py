"""The records under chaos: a table, and a log of its own of every change of state, kept by the database."""

from __future__ import annotations

import time

import sqlalchemy as sa

from tickoff import Tickoff
from tickoff.stores.sql.engines import database_of
from tickoff.testing import checker

_NOTE = "INSERT INTO audit (record, was, became) VALUES (NEW.id, OLD.status, NEW.status)"

_AUDIT = {
    "sqlite": (
        "CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER, was TEXT, became TEXT)",
        f"CREATE TRIGGER audited AFTER UPDATE ON contacts BEGIN {_NOTE}; END",
    ),
    "postgresql": (
        "CREATE TABLE audit (id bigserial PRIMARY KEY, record bigint, was text, became text)",
        f"CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_NOTE}; RETURN NEW; END $$",
        "CREATE TRIGGER audited AFTER UPDATE ON contacts FOR EACH ROW EXECUTE FUNCTION audit()",
    ),
    "mysql": (
        "CREATE TABLE audit (id bigint AUTO_INCREMENT PRIMARY KEY, record bigint, was text, became text)",
        f"CREATE TRIGGER audited AFTER UPDATE ON contacts FOR EACH ROW {_NOTE}",
    ),
}


class Records:
    """A table of contacts, of which each is to be answered."""

    def __init__(self, url: str, rows: int) -> None:
        self._rows = rows
        self._engine = database_of(url).open(30.0)
        contacts = sa.Table(
            "contacts",
            sa.MetaData(),
            sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("answer", sa.String(30)),
        )
        with self._engine.connect() as connection:
            contacts.create(connection)
            for start in range(0, rows, 5000):
                chunk = [{"id": i} for i in range(start, min(start + 5000, rows))]
                connection.execute(contacts.insert(), chunk)
        self._install(url)

    def wait_until_done(self, limit: float) -> list[str]:
        """Nothing is left to be done, in time."""
        deadline = time.monotonic() + limit
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return [f"{left} records are not DONE {limit:.0f} s after the faults"] if left else []

    def violations(self) -> list[str]:
        """What happened to records that must not."""
        expected = {str(i): f"a{i}" for i in range(self._rows)}
        found = {
            str(row.id): (row.status, row.answer)
            for row in self._all("SELECT id, status, answer FROM contacts")
        }
        wrong = checker.records_whole(expected, found)
        changes = self._all("SELECT record, was, became FROM audit ORDER BY id")
        return wrong + checker.records_went((str(row.record), row.was, row.became) for row in changes)

    def counts(self) -> dict[str, int]:
        """What was done."""
        claimed = self._all("SELECT count(*) AS n FROM audit WHERE became = 'IN_FLIGHT' AND was = 'PENDING'")[
            0
        ].n
        done = self._all("SELECT count(*) AS n FROM contacts WHERE status = 'DONE'")[0].n
        return {"records": self._rows, "records DONE": done, "records claimed again": claimed - self._rows}

    def _install(self, url: str) -> None:
        jobs = Tickoff("memory://", database=url)
        jobs.each("contacts", status="status", result="answer", name="enrich")(str)
        with jobs.records("enrich") as records:
            records.table.install()
        jobs.close()
        with self._engine.connect() as connection:
            for statement in _AUDIT[
                "mysql" if self._engine.dialect.name == "mariadb" else self._engine.dialect.name
            ]:
                connection.exec_driver_sql(statement)

    def _left(self) -> int:
        try:
            return int(self._all("SELECT count(*) AS n FROM contacts WHERE status <> 'DONE'")[0].n)
        except sa.exc.DBAPIError:
            return self._rows

    def _all(self, text: str) -> list[sa.Row[tuple[object, ...]]]:
        with self._engine.connect() as connection:
            return list(connection.exec_driver_sql(text).all())
