"""Many processes on one table: no record twice, none lost, no deadlock, as a trigger saw it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.tables.conftest import Home, table_name
from tickoff.tables.base import Plan, State

PROCESSES = 8
ROWS = 1500


@pytest.mark.timeout(180)
@pytest.mark.parametrize("beside", [False, True], ids=["within", "beside"])
def test_eight_processes_drain_a_table(home: Home, *, beside: bool) -> None:
    """Every row ends DONE once; nothing that was DONE is ever changed."""
    name = table_name()
    companion = f"{name}_kept" if beside else None
    home.run(f"CREATE TABLE {name} (id int PRIMARY KEY{'' if beside else ', answer varchar(10)'})")
    records = home.open(Plan(name, "status", result=("answer",), companion=companion))
    keeper = companion or name
    watch(home, keeper)
    home.run(f"INSERT INTO {name} (id) VALUES " + ",".join(f"({i})" for i in range(ROWS)))
    command = [sys.executable, "-m", "tests.tables.drain", home.url, name]
    told = [companion] if companion else []
    racers = [
        subprocess.Popen([*command, str(i), *told], stderr=subprocess.PIPE, text=True)
        for i in range(PROCESSES)
    ]
    errors = [racer.communicate(timeout=170)[1] for racer in racers]
    assert [error for error in errors if error] == []
    assert records.counts()[State.DONE] == ROWS
    changes = Counter((old, new) for _, old, new in home.run(f"SELECT id, old, new FROM {keeper}_log"))
    assert changes["IN_FLIGHT", "DONE"] == ROWS
    claims = changes["PENDING", "IN_FLIGHT"]
    assert claims == ROWS + changes["IN_FLIGHT", "PENDING"]
    assert set(changes) <= {("PENDING", "IN_FLIGHT"), ("IN_FLIGHT", "DONE"), ("IN_FLIGHT", "PENDING")}
    assert home.run(
        f"SELECT count(*) FROM tickoff_claim WHERE record = '{keeper}.status' AND owner <> ''"
    ) == [(0,)]


def watch(home: Home, name: str) -> None:
    """Let a trigger in the database write down every change of a state."""
    home.run(f"CREATE TABLE {name}_log (id int, old varchar(20), new varchar(20))")
    log = f"INSERT INTO {name}_log VALUES (OLD.id, OLD.status, NEW.status)"
    match home.kind:
        case "postgres":
            home.run(
                f"CREATE FUNCTION {name}_f() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {log}; RETURN NULL; END $$"
            )
            home.run(
                f"CREATE TRIGGER {name}_t AFTER UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_f()"
            )
        case "mariadb":
            home.run(f"CREATE TRIGGER {name}_t AFTER UPDATE ON {name} FOR EACH ROW {log}")
        case _:
            home.run(f"CREATE TRIGGER {name}_t AFTER UPDATE ON {name} BEGIN {log}; END")
