"""The table of fences in the user's database, and the statements that read and raise one.

The highest fence that has guarded a transaction stands in one row per name. Whoever raises it holds the
row's lock until the transaction ends, so a later holder's writes come after an earlier one's, or the
earlier one is refused.
"""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.schema import CreateTable

from ..errors import ConfigError

# Names are compared byte by byte, as the lease stores do; MySQL would fold their case.
_Name = sa.String(200).with_variant(
    mysql.VARCHAR(200, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)

table = sa.Table(
    "tickoff_fence",
    sa.MetaData(),
    sa.Column("name", _Name, primary_key=True),
    sa.Column("fence", sa.BigInteger, nullable=False),
    postgresql_with={"fillfactor": 50},  # each guard updates its row in place
    mysql_engine="InnoDB",
)

create = CreateTable(table, if_not_exists=True)

look = sa.select(table.c.fence).where(table.c.name == sa.bindparam("of"))
"""The fence as it is committed; takes no lock."""

look_and_lock = look.with_for_update()

DIALECTS = ("sqlite", "postgresql", "mysql", "mariadb")


def ddl(dialect_name: str) -> str:
    """The statement that makes the table, for a dialect."""
    if dialect_name not in DIALECTS:
        raise ConfigError(f"dialect {dialect_name!r} is unknown; use one of {', '.join(DIALECTS)}")
    dialect = sa.make_url(f"{dialect_name}://").get_dialect()()
    return str(CreateTable(table).compile(dialect=dialect)).strip() + ";\n"


@cache
def exists(dialect_name: str) -> sa.TextClause:
    """Whether the table is there, asked of the catalog: a failed statement would spoil the transaction."""
    if dialect_name == "postgresql":
        return sa.text(f"SELECT to_regclass('{table.name}') IS NOT NULL")
    return sa.text(
        "SELECT count(*) FROM information_schema.tables "  # noqa: S608 - a constant
        f"WHERE table_schema = DATABASE() AND table_name = '{table.name}'"
    )


@cache
def raise_to(dialect_name: str) -> sa.Insert:
    """Put the row of `name` up to `fence`, never down, and lock it; `limits` has it for the others."""
    if dialect_name == "sqlite":
        plain = sqlite.insert(table).values(name=sa.bindparam("name"), fence=sa.bindparam("fence"))
        highest = sa.func.max(table.c.fence, plain.excluded.fence)
        return plain.on_conflict_do_update(index_elements=[table.c.name], set_={"fence": highest})
    other = mysql.insert(table).values(name=sa.bindparam("name"), fence=sa.bindparam("fence"))
    return other.on_duplicate_key_update(fence=sa.func.greatest(table.c.fence, other.inserted.fence))
