"""Ten servers, one import an hour: a supplier's products, written by their key into our database.

On every server:

    export TICKOFF_URL=redis://localhost:6379/0 DATABASE_URL=postgresql+psycopg://localhost/shop
    export SUPPLIER_URL=https://supplier.example/api
    tickoff serve --app examples.product_import
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import sqlalchemy as sa

from tickoff import Tick, Tickoff, upsert

jobs = Tickoff()
database = sa.create_engine(os.environ["DATABASE_URL"])
supplier = httpx.Client(base_url=os.environ["SUPPLIER_URL"], timeout=10)

products = sa.Table(
    "products",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("cents", sa.Integer, nullable=False),
)


@jobs.cron("0 * * * *", tz="UTC", ttl="60s", timeout="30m", attempts=3)
def import_products(tick: Tick) -> None:
    """Take in what has changed since the last import that ended well; everything, the first time."""
    for page in changed_products(tick.since, tick.at):
        with tick.transaction(database) as db:  # refused if a newer import has written
            upsert(db, products, page, key="id")


def changed_products(since: datetime | None, until: datetime) -> Iterator[list[dict[str, Any]]]:
    """The supplier's pages; each is fetched while no transaction is open."""
    query = {"until": until.isoformat()} | ({"since": since.isoformat()} if since else {})
    page: int | None = 1
    while page:
        answer = supplier.get("/products", params=query | {"page": page}).raise_for_status().json()
        yield answer["products"]
        page = answer["next_page"]


if __name__ == "__main__":
    jobs.serve()
