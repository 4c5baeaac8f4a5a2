"""A process that drains a table through the tables' layer.

`python -m tests.tables.drain URL TABLE SEED [COMPANION]`
"""

from __future__ import annotations

import random
import sys
import time

from tickoff.names import new_token, owner
from tickoff.tables import open_table
from tickoff.tables.base import Batch, Charged, Done, Plan, RecordTable, Verdict


def main(url: str, name: str, seed: str, companion: str | None = None) -> None:
    """Claim, settle, give back and sweep in a random order until nothing is left."""
    chance = random.Random(seed)
    table = open_table(url, Plan(name, "status", result=("answer",), companion=companion))
    floor = None
    while table.left().any:
        batch = table.claim(new_token(), owner(), chance.randint(1, 40), 30.0, floor)
        if chance.random() < 0.1:
            batch = table.claim_suspect(new_token(), owner(), 30.0) if not batch.records else batch
        floor = None if batch.exhausted else batch.records[-1].key
        work(table, batch, chance)
        if not batch.records:
            time.sleep(0.02)


def work(table: RecordTable, batch: Batch, chance: random.Random) -> None:
    """Settle all of it in two flushes, in any order; some are charged, some given back, some renewed."""
    records = list(batch.records)
    chance.shuffle(records)
    if chance.random() < 0.2:
        table.renew([batch.token], 30.0)
    back = [record.key for record in records if chance.random() < 0.05]
    verdicts: list[Verdict] = [
        Charged(record.key, "again", 0.0) if chance.random() < 0.05 else Done(record.key, {"answer": "ok"})
        for record in records
        if record.key not in back
    ]
    half = len(verdicts) // 2
    for flush, last in ((verdicts[:half], False), (verdicts[half:], not back)):
        settled = table.settle(batch.token, flush, last=last)
        assert not settled.refused
        assert not settled.culprits
        while settled.busy:
            settled = table.settle(batch.token, [v for v in flush if v.key in settled.busy], last=last)
    if back:
        table.give_back(batch.token, back, last=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
