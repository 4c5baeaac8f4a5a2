"""Rows by a stable key: inserted, updated, left alone, or refused with the remedy."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.databases import DATABASES, database
from tickoff import upsert
from tickoff.errors import ConfigError
from tickoff.writes.batches import BATCH


class Base(DeclarativeBase):
    pass


class Product(Base):
    __tablename__ = "products"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column("name", sa.String(40))
    price: Mapped[Decimal | None] = mapped_column(sa.Numeric(12, 2))
    slug: Mapped[str | None] = mapped_column(sa.String(40), unique=True)
    made_by: Mapped[str | None] = mapped_column(sa.String(10), default="python")
    extra: Mapped[Any | None] = mapped_column(sa.JSON(none_as_null=True))


products = Base.metadata.tables["products"]


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """A user's database of each kind, with a table of products."""
    with database(request.param, request, tmp_path) as made:
        Base.metadata.create_all(made)
        yield made


@pytest.fixture
def db(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection to it, in a transaction."""
    with engine.connect() as connection:
        yield connection


def stored(db: sa.Connection, *columns: str) -> list[tuple[Any, ...]]:
    """The products there are, by their id."""
    chosen = sa.select(*(products.c[name] for name in columns)).order_by(products.c.id)
    return [tuple(row) for row in db.execute(chosen)]


@pytest.mark.parametrize("table", ["products", products])
def test_rows_are_inserted_or_updated_by_their_key(db: sa.Connection, table: Any) -> None:
    """What rows leave out keeps its value; a Table's defaults are for new rows."""
    assert upsert(db, table, [{"id": 1, "name": "tea"}, {"id": 2, "name": "milk"}], key="id") == 2
    assert upsert(db, table, [{"id": 2, "price": Decimal("1.50")}, {"id": 3, "price": None}], key="id") == 2
    assert stored(db, "id", "name", "price") == [
        (1, "tea", None),
        (2, "milk", Decimal("1.50")),
        (3, None, None),
    ]
    expected = "python" if table is products else None
    assert stored(db, "made_by") == [(expected,)] * 3


def test_a_mapped_class_goes_by_its_attributes(engine: sa.Engine) -> None:
    """In a Session, whose own changes are written before."""
    with Session(engine) as session:
        session.add(Product(id=1, title="tea", slug="tea"))
        assert upsert(session, Product, [{"id": 1, "title": "green tea"}], key="id") == 1
        session.expire_all()
        assert session.get(Product, 1).title == "green tea"  # type: ignore[union-attr]
        session.rollback()
        assert session.get(Product, 1) is None


def test_a_repeated_import_rewrites_no_row(db: sa.Connection, engine: sa.Engine) -> None:
    """The engine itself is asked: no trigger fires and no row moves for rows that are as they were."""
    rows = [{"id": n, "name": f"n{n}", "price": Decimal(n) / 4, "extra": {"n": [n]}} for n in range(1, 2500)]
    upsert(db, products, rows, key="id")
    watch(db)
    upsert(db, products, rows, key="id")
    assert seen(db) == 0
    rows[7] = rows[7] | {"name": "N8"}
    rows[8] = rows[8] | {"extra": None}
    upsert(db, products, iter(rows), key="id")
    assert seen(db) == 2
    assert stored(db, "name", "extra")[7:9] == [("N8", {"n": [8]}), ("n9", None)]


def watch(db: sa.Connection) -> None:
    """Count the rows that are rewritten from now on by the engine's own word."""
    db.commit()
    if db.dialect.name == "sqlite":
        db.exec_driver_sql("CREATE TABLE seen (id integer)")
        db.exec_driver_sql(
            "CREATE TRIGGER watch AFTER UPDATE ON products BEGIN INSERT INTO seen VALUES (new.id); END"
        )
    elif db.dialect.name == "postgresql":
        db.info["watched"] = set(db.exec_driver_sql("SELECT ctid::text, xmin::text FROM products").all())
    else:
        db.info["watched"] = updates_of_mariadb(db)


def seen(db: sa.Connection) -> int:
    """How many were."""
    db.commit()
    if db.dialect.name == "sqlite":
        return int(db.exec_driver_sql("SELECT count(*) FROM seen").scalar() or 0)
    if db.dialect.name == "postgresql":
        now = db.exec_driver_sql("SELECT ctid::text, xmin::text FROM products").all()
        return len(set(now) - db.info["watched"])
    return updates_of_mariadb(db) - int(db.info["watched"])


def updates_of_mariadb(db: sa.Connection) -> int:
    row = db.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_update'").one()
    return int(row[1])


def test_a_change_of_case_is_a_change(db: sa.Connection, engine: sa.Engine) -> None:
    """Also in a column whose collation does not tell cases apart."""
    blind = {"sqlite": "NOCASE", "mysql": "utf8mb4_general_ci"}.get(engine.name)
    table = sa.Table("blind", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    table.append_column(sa.Column("name", sa.String(20, collation=blind)))
    table.create(db)
    for name in ("tea", "TEA"):
        upsert(db, "blind", [{"id": 1, "name": name}], key="id")
        assert db.scalar(sa.select(table.c.name)) == name


def test_many_rows_come_from_a_generator_in_batches(db: sa.Connection) -> None:
    """No more than a batch is held, and the last one may be short."""
    count, ahead = 3 * BATCH + 1, 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal ahead
        for n in range(1, count + 1):
            yield {"id": n, "name": str(n)}
            if n % BATCH == 0:
                written = db.scalar(sa.select(sa.func.count()).select_from(products))
                ahead = max(ahead, n - int(written or 0))

    assert upsert(db, products, rows(), key="id") == count
    assert len(stored(db, "id")) == count
    assert ahead <= 2 * BATCH


def test_no_rows_are_no_rows(db: sa.Connection) -> None:
    """But a wrong table or key is refused all the same."""
    assert upsert(db, products, [], key="id") == 0
    with pytest.raises(ConfigError, match="names no column"):
        upsert(db, products, [], key="nope")


def test_the_later_of_two_rows_with_one_key_wins(db: sa.Connection) -> None:
    """In one batch and across batches; all of them are counted."""
    rows = [{"id": n % 3 + 1, "name": str(n)} for n in range(BATCH + 5)]
    assert upsert(db, products, rows, key="id") == BATCH + 5
    assert stored(db, "name") == [(str(BATCH + 2),), (str(BATCH + 3),), (str(BATCH + 4),)]


def test_rows_that_are_only_a_key_are_inserted_once(db: sa.Connection) -> None:
    """There is nothing to update in them."""
    for _ in range(2):
        upsert(db, "products", [{"id": 1}, {"id": 2}], key="id")
    assert stored(db, "id", "name") == [(1, None), (2, None)]


def test_a_key_may_be_composite_and_in_another_order(db: sa.Connection) -> None:
    """Found as a unique index in the database, though the Table does not know of it."""
    db.exec_driver_sql("CREATE TABLE prices (day date NOT NULL, sku varchar(9) NOT NULL, price integer)")
    db.exec_driver_sql("CREATE UNIQUE INDEX one_a_day ON prices (sku, day)")
    columns = [sa.Column("day", sa.Date), sa.Column("sku", sa.String(9)), sa.Column("price", sa.Integer)]
    table = sa.Table("prices", sa.MetaData(), *columns)
    for price in (1, 2):
        rows = [{"day": date(2026, 1, d), "sku": "a", "price": price} for d in (1, 2)]
        upsert(db, table, rows, key=("day", "sku"))
    assert db.execute(sa.select(table.c.price)).all() == [(2,), (2,)]


def test_a_table_may_be_in_another_schema(db: sa.Connection, tmp_path: Path, engine: sa.Engine) -> None:
    """`schema.name`, and names that need quotes."""
    schema = f"other_{uuid.uuid4().hex[:6]}"
    match engine.name:
        case "sqlite":
            db.exec_driver_sql(f"ATTACH DATABASE '{tmp_path}/other.db' AS {schema}")
        case "postgresql":
            db.exec_driver_sql(f"CREATE SCHEMA {schema}")
        case _:
            db.exec_driver_sql(f"CREATE DATABASE {schema}")
    table = sa.Table(
        "Some Order", sa.MetaData(), sa.Column("the id", sa.Integer, primary_key=True), schema=schema
    )
    table.append_column(sa.Column('a"b c', sa.String(5)))
    table.create(db)
    for value in "xy":
        upsert(db, f"{schema}.Some Order", [{"the id": 1, 'a"b c': value}], key="the id")
    assert db.execute(sa.select(table)).all() == [(1, "y")]


def test_values_go_through_sqlalchemys_types(db: sa.Connection) -> None:
    """They come back as they would after a plain insert, nulls among them."""
    table = sa.Table(
        "kinds",
        sa.MetaData(),
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("json", sa.JSON(none_as_null=True)),
        sa.Column("money", sa.Numeric(20, 4)),
        sa.Column("at", sa.DateTime),
        sa.Column("day", sa.Date),
        sa.Column("raw", sa.LargeBinary),
        sa.Column("flag", sa.Boolean),
        sa.Column("share", sa.Double),
        sa.Column("mood", sa.Enum("good", "bad", name="mood")),
        sa.Column("text", sa.Text),
    )
    table.create(db)
    now = datetime(2026, 2, 3, 4, 5, 6)  # noqa: DTZ001 - the column has no zone
    full = {
        "id": uuid.uuid4(),
        "json": {"a": [1, None, "é"], "b": 'quo"te'},
        "money": Decimal("12345.6789"),
        "at": now,
        "day": now.date(),
        "raw": b"\x00\xff'\"\\",
        "flag": True,
        "share": 0.1,
        "mood": "bad",
        "text": "100 % {sure}, 'quoted' \\ :not $1 ?",
    }
    empty = dict.fromkeys(full) | {"id": uuid.uuid4()}
    for _ in range(2):
        upsert(db, table, [full, empty], key="id")
        got = {row.id: row._asdict() for row in db.execute(sa.select(table))}
        assert got == {full["id"]: full, empty["id"]: empty}


def test_numbers_of_several_types_may_stand_in_one_column(db: sa.Connection) -> None:
    """Feeds mix integers, floats and decimals; no array can hold them, so another way is taken."""
    rows = [{"id": 1, "price": 1}, {"id": 2, "price": Decimal("2.5")}, {"id": 3, "price": None}]
    for _ in range(2):
        upsert(db, products, [*rows, {"id": 4, "price": 0.25}], key="id")
    assert stored(db, "price") == [(Decimal(1),), (Decimal("2.5"),), (None,), (Decimal("0.25"),)]


def test_what_does_not_fit_is_refused_not_cut_off(db: sa.Connection) -> None:
    """A text that is too long is the database's to refuse (SQLite takes it as it is)."""
    if db.dialect.name == "sqlite":
        pytest.skip("SQLite has no lengths")
    with pytest.raises(sa.exc.DataError):
        upsert(db, "products", [{"id": 1, "name": "x" * 41}], key="id")


def test_types_that_only_postgres_has_are_written(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Arrays, intervals, zones, native enums by reflection, and types SQLAlchemy does not know."""
    with database("postgres", request, tmp_path) as engine, engine.begin() as db:
        db.exec_driver_sql("CREATE TYPE mood AS ENUM ('good', 'bad')")
        db.exec_driver_sql(
            "CREATE TABLE odd (id bigint PRIMARY KEY, tags text[], span interval, at timestamptz, mood mood, "
            "spot point, doc jsonb, old json)"
        )
        at = datetime(2026, 1, 2, tzinfo=UTC)
        row = {"id": 1, "tags": ["a", None], "span": timedelta(hours=5), "at": at, "mood": "bad"}
        row |= {"doc": {"a": 1}, "old": {"b": 2}}
        for _ in range(2):
            with pytest.warns(sa.exc.SAWarning, match="point"):
                upsert(db, "odd", [row | {"spot": "(1,2)"}], key="id")
        got = db.exec_driver_sql("SELECT id, tags, span, at, mood, doc, old, spot::text FROM odd").one()
        assert got._asdict() == row | {"spot": "(1,2)"}


def test_another_rows_unique_value_is_an_integrity_error_everywhere(db: sa.Connection) -> None:
    """MySQL's own statement would overwrite that other row."""
    upsert(db, products, [{"id": 1, "slug": "tea"}, {"id": 2, "slug": "milk"}], key="id")
    db.commit()
    for thief in (2, 3):
        with pytest.raises(sa.exc.IntegrityError):
            upsert(db, products, [{"id": thief, "slug": "tea"}], key="id")
        db.rollback()
    assert stored(db, "id", "slug") == [(1, "tea"), (2, "milk")]
    upsert(db, products, [{"slug": "tea", "name": "by slug"}], key="slug")
    assert stored(db, "id", "name") == [(1, "by slug"), (2, None)]


def test_a_zero_is_a_key_or_refused(db: sa.Connection, engine: sa.Engine) -> None:
    """MySQL would count it up and insert it again and again."""
    if engine.name == "mysql":
        with pytest.raises(ConfigError, match="row 2 has 0 in its key"):
            upsert(db, "products", [{"id": 1}, {"id": 0}], key="id")
        return
    for _ in range(2):
        upsert(db, "products", [{"id": 0}], key="id")
    assert stored(db, "id") == [(0,)]


REFUSED = {
    "several tables": (products, [{"id": 1}], (), "names no column"),
    "no such table": ("nowhere", [{"id": 1}], "id", "'nowhere' is not in the database"),
    "no table": (42, [{"id": 1}], "id", "table=42 is no table"),
    "no such key": (products, [{"id": 1}], "sku", "key='sku' names no column of products"),
    "not unique": (products, [{"name": "x"}], "name", "add a unique index on"),
    "too much": (products, [{"id": 1, "slug": "x"}], ("id", "slug"), "is not unique"),
    "no such column": (
        products,
        [{"id": 1, "colour": 2}],
        "id",
        "row 1 has 'colour', which products has not",
    ),
    "no key": (products, [{"name": "x"}], "id", "row 1 has no 'id'"),
    "an empty key": (products, [{"id": 1}, {"id": None}], "id", "row 2 has None in its key"),
    "less": (products, [{"id": 1, "name": "x"}, {"id": 2}], "id", "row 2 lacks 'name', unlike row 1"),
    "more": (products, [{"id": 1}, {"id": 2, "name": "x"}], "id", "row 2 has 'name' beside, unlike row 1"),
    "objects": (Product, [Product(id=1)], "id", "row 1 is of type Product; pass mappings"),
    "tuples": (products, [{"id": 1}, (2,)], "id", "row 2 is of type tuple; pass mappings"),
    "one row": (products, {"id": 1}, "id", "rows=dict is no series of rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_right_is_refused_with_the_remedy(db: sa.Connection, case: str) -> None:
    """Each message names the argument or the row."""
    table, rows, key, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message):
        upsert(db, table, rows, key=key)  # type: ignore[arg-type]


def test_a_row_is_refused_by_its_number_in_the_whole_series(db: sa.Connection) -> None:
    """Not by its number in a batch."""
    rows: list[dict[str, Any]] = [{"id": n, "name": "x"} for n in range(1, BATCH + 3)]
    with pytest.raises(ConfigError, match=f"row {BATCH + 3} lacks 'name'"):
        upsert(db, products, [*rows, {"id": 1}], key="id")


def test_a_partial_index_is_no_key(db: sa.Connection, engine: sa.Engine) -> None:
    """Rows outside of it could come twice."""
    if engine.name == "mysql":
        pytest.skip("MySQL has no partial indexes")
    db.exec_driver_sql("CREATE UNIQUE INDEX dear ON products (name) WHERE price > 0")
    with pytest.raises(ConfigError, match="is not unique"):
        upsert(db, "products", [{"name": "x"}], key="name")


def test_any_mapping_is_a_row_in_any_order(db: sa.Connection) -> None:
    """Rows of a result and dicts built in another order."""
    rows = [{"id": 1, "name": "x"}, {"name": "y", "id": 2}, OrderedDict(name="z", id=3)]
    upsert(db, products, rows, key="id")
    mappings = db.execute(sa.select(products.c.id, products.c.name)).mappings().all()
    upsert(db, products, mappings, key="id")
    assert stored(db, "name") == [("x",), ("y",), ("z",)]
