"""The ledger: a small table beside the user's, with one row per claim.

It is what makes renewals and sweeps cheap without an index that mentions the state: a renewal touches one
row instead of the whole batch, and a sweep learns here which claims ran out and between which keys their
records lie. Beside claims it keeps two kinds of short-lived notes: suspects (keys that are to be claimed
alone) and floors (a key above which rows became PENDING again, for workers that are past it).
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from .dialects import Moment

ALONE = "alone:"
"""Begins the token of a suspect's claim."""

SUSPECT = "suspect"
"""Stands in the claim column of a PENDING row that is to be claimed alone."""

LONGEST_TOKEN = 64


class Kind(StrEnum):
    """What a row of the ledger is."""

    CLAIM = "claim"
    TORN = "torn"
    """A claim that ran out, swept but for rows locked by somebody."""
    SUSPECTS = "suspects"
    FLOOR = "floor"
    REOPENED = "reopened"
    """Its token names the pass that a reopening began."""


metadata = sa.MetaData()

_Text = sa.Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")


def word(length: int) -> sa.types.TypeEngine[str]:
    """A text of ours that is compared as it is, with whatever texts the connection makes."""
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(length).with_variant(exact, "mysql", "mariadb")


ledger = sa.Table(
    "tickoff_claim",
    metadata,
    sa.Column("record", word(200), primary_key=True),
    sa.Column("token", word(LONGEST_TOKEN), primary_key=True),
    sa.Column("kind", word(10), nullable=False),
    sa.Column("owner", word(160), nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("until", Moment, nullable=False),
    sa.Column("keys", _Text, nullable=False),
    mysql_engine="InnoDB",
)
"""`keys`: the lowest and highest key of a claim, the keys of suspects, or a floor ([] for the very start)."""


def record_name(schema: str | None, table: str, status: str) -> str:
    """What the ledger calls the records of a table: the same in every process, whatever the job's name."""
    full = ".".join(part for part in (schema, table, status) if part)
    if len(full) <= 200:
        return full
    return f"{full[:160]}#{hashlib.sha256(full.encode()).hexdigest()[:32]}"
