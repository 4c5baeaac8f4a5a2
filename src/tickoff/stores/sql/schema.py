"""The tables of the lease store, their version, and how they come to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from ...errors import ConfigError

metadata = sa.MetaData()

# MySQL compares text without regard to case unless told otherwise, and indexes at most 3072 bytes.
_Text = sa.Text().with_variant(mysql.TEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
# Its TEXT ends at 64 KiB, which the jobs of a fleet do not.
_LongText = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_Name = sa.String(200).with_variant(
    mysql.VARCHAR(200, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_Word = sa.String(160).with_variant(
    mysql.VARCHAR(160, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger, nullable=False)


def _word(name: str) -> sa.Column[str]:
    return sa.Column(name, _Word, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _Text, nullable=False)


lease = sa.Table(
    "tickoff_lease",
    metadata,
    sa.Column("name", _Name, primary_key=True),
    _number("version"),
    _word("token"),
    _word("owner"),
    _number("tick"),
    _number("taken"),
    _number("until"),
    _number("ttl"),
    _number("fence"),
    sa.Column("attempt", sa.Integer, nullable=False),
    _flag("manual"),
    _word("let_go"),
    _number("decided"),
    _number("finished"),
    _number("since"),
    _flag("open"),
    _word("outcome"),
    _word("outcome_by"),
    _number("outcome_at"),
    _number("steered"),
    _flag("paused"),
    _word("paused_by"),
    _text("paused_why"),
    _number("barrier"),
    _flag("scheduled"),
    _number("used"),
    _text("withdrawn"),
    # Every grant and release updates the row in place; without spare room on the page it would move.
    postgresql_with={"fillfactor": 50},
    mysql_engine="InnoDB",
)

run = sa.Table(
    "tickoff_run",
    metadata,
    sa.Column("name", _Name, primary_key=True),
    sa.Column("tick", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("fence", sa.BigInteger, primary_key=True, autoincrement=False),
    _word("owner"),
    _number("started"),
    _number("ended"),
    _word("outcome"),
    _text("error"),
    sa.Column("attempt", sa.Integer, nullable=False),
    _flag("manual"),
    mysql_engine="InnoDB",
)

note = sa.Table(
    "tickoff_note",
    metadata,
    sa.Column("board", _Name, primary_key=True),
    sa.Column("key", _Name, primary_key=True),
    sa.Column("text", _LongText, nullable=False),
    _number("until"),
    mysql_engine="InnoDB",
)

version = sa.Table(
    "tickoff_schema",
    metadata,
    sa.Column("part", sa.String(20), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    mysql_engine="InnoDB",
)

PART = "lease"
"""The row of `tickoff_schema` that holds the version of these tables."""


@dataclass(frozen=True)
class Migration:
    """One step of the schema: the version it leads to, and what it does."""

    version: int
    summary: str
    apply: Callable[[sa.Connection], None]


def _create_tables(connection: sa.Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: list[Migration] = [Migration(1, "leases, their history, notes", _create_tables)]


def ddl(dialect_name: str) -> str:
    """The statements that make the schema, for a dialect, connecting to nothing."""
    dialect = dialect_for(dialect_name)
    tables = [str(CreateTable(table).compile(dialect=dialect)).strip() for table in metadata.sorted_tables]
    row = f"INSERT INTO {version.name} (part, version) VALUES ('{PART}', {MIGRATIONS[-1].version})"  # noqa: S608 - constants
    return "".join(f"{statement};\n\n" for statement in [*tables, row])


def stored_version(connection: sa.Connection) -> int:
    """The version of the tables that are there, 0 when there are none."""
    if not sa.inspect(connection).has_table(version.name):
        return 0
    found = connection.execute(sa.select(version.c.version).where(version.c.part == PART)).scalar()
    return found or 0


def upgrade(connection: sa.Connection) -> list[Migration]:
    """Apply the steps that are missing; the caller holds the schema lock."""
    current = stored_version(connection)
    missing = [step for step in MIGRATIONS if step.version > current]
    for step in missing:
        step.apply(connection)
        changed = connection.execute(
            sa.update(version).where(version.c.part == PART).values(version=step.version)
        )
        if changed.rowcount == 0:
            connection.execute(sa.insert(version).values(part=PART, version=step.version))
    return missing


DIALECTS = ("sqlite", "postgresql", "mysql", "mariadb")


def dialect_for(name: str) -> sa.Dialect:
    """A dialect by its name, for printing statements without a connection."""
    if name not in DIALECTS:
        raise ConfigError(f"dialect {name!r} is unknown; use one of {', '.join(DIALECTS)}")
    # An URL without a driver's own name resolves the dialect without importing any driver.
    return sa.make_url(f"{name}://").get_dialect()()
