"""What runs on the servers of the demo: an application as yours could be, and nothing but the public surface.

The environment names the store (TICKOFF_URL) and the database (TICKOFF_DATABASE), as on any server.
"""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa

from tickoff import LeaseLost, StaleFence, Tick, Tickoff

from . import outside

EVERY = 2.0
"""Seconds between two newsletters."""

LOOK_UP = "look-up"

_GRACE = "1s"


def newsletter() -> Tickoff:
    """One email every two seconds."""
    jobs = Tickoff(grace=_GRACE)

    @jobs.every(EVERY, name="newsletter")
    def send_newsletter(tick: Tick) -> None:
        outside.mail(tick)

    return jobs


def imports(name: str, period: str) -> Tickoff:
    """A slow import; a tick that kills its server is taken over by another one as soon as the lease ends."""
    jobs = Tickoff(grace=_GRACE)
    engine = sa.create_engine(os.environ["TICKOFF_DATABASE"])

    @jobs.every(period, name=name, ttl="3s", recover="now")
    def import_products(tick: Tick) -> None:
        products = outside.fetch_products(tick)
        try:
            with tick.transaction(engine) as db:  # refused if somebody newer has written
                db.execute(sa.insert(imported()).values(_line_of(tick, len(products))))
        except (StaleFence, LeaseLost) as refusal:
            outside.confess(tick, refusal)
            raise

    return jobs


def lookups() -> Tickoff:
    """A call for every contact."""
    jobs = Tickoff(grace=_GRACE)

    @jobs.each(
        contacts().name, name=LOOK_UP, key="phone", status="state", result="number", concurrency=4, ttl="2s"
    )
    def look_up(contact: sa.Row[Any]) -> str:
        return outside.number_of(contact.phone)

    return jobs


def imported() -> sa.Table:
    """The table with a line for every import that was written."""
    return sa.Table(
        _named("imports"),
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("job", sa.String(100), nullable=False),
        sa.Column("tick", sa.BigInteger, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("products", sa.Integer, nullable=False),
    )


def contacts() -> sa.Table:
    """The table whose rows are to be worked, as it was before Tickoff came."""
    return sa.Table(
        _named("contacts"),
        sa.MetaData(),
        sa.Column("phone", sa.String(20), primary_key=True),
        sa.Column("number", sa.String(20)),
    )


TABLES = "TICKOFF_DEMO_TABLES"


def _named(table: str) -> str:
    """The name of a table: this demo's own, in a database that may be somebody's."""
    return f"{os.environ[TABLES]}_{table}"


def _line_of(tick: Tick, products: int) -> dict[str, Any]:
    at = round(tick.at.timestamp() * 1000)
    return {"job": tick.job.rpartition(":")[2], "tick": at, "fence": tick.fence, "products": products}
