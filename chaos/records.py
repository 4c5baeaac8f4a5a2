"""The records under chaos: a table, and a log of its own of every change of state, kept by the database."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

import sqlalchemy as sa

from tickoff import Tickoff
from tickoff.stores.sql.engines import database_of
from tickoff.tables.sweeping import DIED
from tickoff.testing import checker

from .member import FAULT

_COLUMNS = "record bigint, was text, became text, attempts bigint, error text"
_NOTE = (
    "INSERT INTO audit (record, was, became, attempts, error) "
    "VALUES (NEW.id, OLD.status, NEW.status, NEW.status_attempts - OLD.status_attempts, NEW.status_error)"
)

_CLAIMED = "INSERT INTO claims (token, owner) VALUES (NEW.token, NEW.owner)"
"""Who made a claim: the answers of a record must be of the one who held it when they were written."""

_AUDIT = {
    "sqlite": (
        f"CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, {_COLUMNS})",
        f"CREATE TRIGGER audited AFTER UPDATE ON contacts BEGIN {_NOTE}; END",
        f"CREATE TRIGGER claimed AFTER INSERT ON tickoff_claim BEGIN {_CLAIMED}; END",
    ),
    "postgresql": (
        f"CREATE TABLE audit (id bigserial PRIMARY KEY, {_COLUMNS})",
        f"CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_NOTE}; RETURN NEW; END $$",
        "CREATE TRIGGER audited AFTER UPDATE ON contacts FOR EACH ROW EXECUTE FUNCTION audit()",
        f"CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_CLAIMED}; RETURN NEW; END $$",
        "CREATE TRIGGER claimed AFTER INSERT ON tickoff_claim FOR EACH ROW EXECUTE FUNCTION own()",
    ),
    "mysql": (
        f"CREATE TABLE audit (id bigint AUTO_INCREMENT PRIMARY KEY, {_COLUMNS})",
        f"CREATE TRIGGER audited AFTER UPDATE ON contacts FOR EACH ROW {_NOTE}",
        f"CREATE TRIGGER claimed AFTER INSERT ON tickoff_claim FOR EACH ROW {_CLAIMED}",
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
            sa.Column("answer", sa.String(200)),
        )
        with self._engine.connect() as connection:
            contacts.create(connection)
            for start in range(0, rows, 5000):
                chunk = [{"id": i} for i in range(start, min(start + 5000, rows))]
                connection.execute(contacts.insert(), chunk)
        self._install(url)

    def wait_until_done(self, patience: float) -> list[str]:
        """Records go on being done until none is left; so long a standstill means that some are stuck."""
        left, since = self._left(), time.monotonic()
        while left and time.monotonic() - since < patience:
            time.sleep(0.2)
            now_left = self._left()
            if now_left < left:
                left, since = now_left, time.monotonic()
        return [f"{left} records are not DONE, and none was for {patience:.0f} s"] if left else []

    def violations(self, raised: Mapping[str, int]) -> list[str]:
        """What happened to records that must not, given how often the call for each raised an error."""
        expected = {str(i): f"a{i}" for i in range(self._rows)}
        rows = self._all("SELECT id, status, answer, status_claim AS token FROM contacts")
        found = {str(row.id): (row.status, (row.answer or "").split(" ")[0]) for row in rows}
        changes = self._all("SELECT record, was, became, attempts, error FROM audit ORDER BY id")
        holders = {row.token: row.owner for row in self._all("SELECT token, owner FROM claims")}
        wrong = checker.records_whole(expected, found)
        wrong += [
            f"record {row.id} was answered by {row.answer}, while {holders.get(row.token)} held it"
            for row in rows
            if row.status == "DONE" and row.answer.split(" ")[1] != holders.get(row.token)
        ]
        wrong += checker.records_went((str(row.record), row.was, row.became) for row in changes)
        wrong += [
            f"record {row.record} was charged {row.attempts} at once"
            for row in changes
            if row.attempts not in (0, 1)
        ]
        charged = Counter(str(row.record) for row in changes if row.attempts and FAULT in row.error)
        return wrong + checker.charged_for_failures(charged, raised)

    def counts(self) -> dict[str, int]:
        """What was done."""
        claimed = self._all("SELECT count(*) AS n FROM audit WHERE became = 'IN_FLIGHT' AND was = 'PENDING'")[
            0
        ].n
        done = self._all("SELECT count(*) AS n FROM contacts WHERE status = 'DONE'")[0].n
        charged = self._all("SELECT coalesce(sum(attempts), 0) AS n FROM audit")[0].n
        deaths = self._all(f"SELECT count(*) AS n FROM audit WHERE attempts > 0 AND error = '{DIED}'")[0].n
        return {
            "records": self._rows,
            "records DONE": done,
            "records claimed again": claimed - self._rows,
            "attempts charged": int(charged),
            "of these for a dead process": deaths,
        }

    def _install(self, url: str) -> None:
        jobs = Tickoff("memory://", database=url)
        jobs.each("contacts", status="status", result="answer", name="enrich")(str)
        with jobs.records("enrich") as records:
            records.table.install()
        jobs.close()
        with self._engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE claims (token varchar(200), owner varchar(200))")
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
