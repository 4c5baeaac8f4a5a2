"""The article's case, end to end: contacts, a slow and moody API, four servers and their fates."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.records.api import Api, api
from tests.records.shop import Server, Shop, eventually
from tickoff.records.operator import Records

FULL = os.environ.get("TICKOFF_FULL") == "1"
ROWS = 100_000 if FULL else 3_000
LIMIT = 800 if FULL else 110
"""Seconds that any part may take: machines are busy."""
LATENCY = 0.005 if FULL else 0.03
OPTIONS = {
    "key": "phone_number",
    "status": "aadhaar_status",
    "result": "aadhaar_number",
    "concurrency": 16 if FULL else 4,
    "ttl": "4s",
}

_NOTE = "INSERT INTO {t}_changed VALUES (old.phone_number);"

TRIGGERS = {
    "sqlite": [
        f"CREATE TRIGGER {{t}}_w AFTER UPDATE ON {{t}} WHEN old.aadhaar_status = 'DONE' BEGIN {_NOTE} END"
    ],
    "postgres": [
        f"CREATE FUNCTION {{t}}_n() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {_NOTE} RETURN new; END'",
        """CREATE TRIGGER {t}_w AFTER UPDATE ON {t} FOR EACH ROW
           WHEN (old.aadhaar_status = 'DONE') EXECUTE FUNCTION {t}_n()""",
    ],
    "mariadb": [
        f"""CREATE TRIGGER {{t}}_w AFTER UPDATE ON {{t}} FOR EACH ROW
            BEGIN IF old.aadhaar_status = 'DONE' THEN {_NOTE} END IF; END"""
    ],
}
"""The database itself notes every change to a row that was DONE."""


@pytest.fixture
def provider() -> Iterator[Api]:
    """The API that is paid for."""
    with api(LATENCY) as running:
        os.environ["SHOP_API"] = running.address
        yield running
        del os.environ["SHOP_API"]


def stock(shop: Shop) -> None:
    """The article's table, and the trigger."""
    shop.sql(
        "CREATE TABLE {t} (phone_number varchar(20) PRIMARY KEY, aadhaar_status varchar(20) NOT NULL "
        "DEFAULT 'PENDING', aadhaar_number varchar(20))"
    )
    shop.sql("CREATE TABLE {t}_changed (phone_number varchar(20))")
    with shop.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for start in range(0, ROWS, 1000):
            values = ", ".join(f"('p{i:06}')" for i in range(start, start + 1000))
            connection.exec_driver_sql(f"INSERT INTO {shop.table} (phone_number) VALUES {values}")
        connection.exec_driver_sql("COMMIT")
    with shop.records(str, **OPTIONS) as records:
        records.table.install()
    for statement in TRIGGERS[shop.kind]:
        shop.sql(statement)


soon = partial(eventually, limit=LIMIT)


def decided(shop: Shop) -> int:
    """How many rows are decided so far."""
    query = "SELECT count(*) FROM {t} WHERE aadhaar_status IN ('DONE', 'FAILED')"
    return int(shop.sql(query)[0][0])


def bound(records: Records, server: Server) -> int:
    """How many calls this server said would be repeated if it died."""
    mine = [one.repeat for one in records.servers() if f":{server.process.pid}:" in one.server]
    return mine[0]


@pytest.mark.timeout(2 * LIMIT)
def test_every_contact_is_done_once_whatever_happens_to_the_servers(shop: Shop, provider: Api) -> None:
    """One killed, one stopped past its claim, one deployed: none lost, none changed, few paid twice."""
    stock(shop)
    begun = time.monotonic()
    records = shop.records(str, **OPTIONS)
    servers = [shop.server("lookup", **OPTIONS) for _ in range(5)]
    with servers[0] as killed, servers[1] as zombie, servers[2] as deployed, servers[3] as steady:
        soon(lambda: len(records.servers()) == 4 and decided(shop) > ROWS * 0.1)
        repeated = bound(records, killed)
        killed.signal(signal.SIGKILL)
        soon(lambda: decided(shop) > ROWS * 0.25)
        repeated += bound(records, zombie)
        zombie.freeze()
        soon(lambda: decided(shop) > ROWS * 0.4)
        deployed.signal(signal.SIGTERM)
        assert deployed.answer(LIMIT)["interrupted"]
        with servers[4] as renewed:
            pid = f":{zombie.process.pid}:"
            soon(lambda: not any(pid in one.owner for one in records.table.holdings()))
            zombie.thaw()
            said = [server.answer(LIMIT) for server in (zombie, steady, renewed)]
    query = "SELECT aadhaar_status, count(*) FROM {t} GROUP BY aadhaar_status"
    assert dict(shop.sql(query)) == {"DONE": ROWS}
    assert shop.sql("SELECT * FROM {t}_changed") == []
    number = shop.joined("'n'", "substr(phone_number, 2)")
    assert shop.sql(f"SELECT * FROM {{t}} WHERE aadhaar_number <> {number}") == []
    assert shop.sql("SELECT count(*) FROM {t} WHERE aadhaar_number IS NULL")[0][0] == sum(
        1 for phone in provider.paid if sum(phone.encode()) % 20 == 7
    )
    assert said[0]["counts"]["refused"] > 0
    assert len(provider.paid) == ROWS
    stalled = [one["counts"]["refused"] for one in said[1:]]
    assert provider.repeated <= repeated, f"refused of the servers that were left alone: {stalled}"
    print(
        f"{shop.kind}: {ROWS:,} rows DONE in {time.monotonic() - begun:.0f} s, none changed afterwards; "
        f"{said[0]['counts']['refused']} answers of the stopped server refused; "
        f"{provider.repeated} calls repeated, of {repeated} published as possible"
    )
