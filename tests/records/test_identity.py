"""`record_key`: the same at each attempt and on all servers, another one for others and after a reopening."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.records.shop import Shop


def test_the_key_of_a_record_is_the_same_at_each_attempt_and_new_after_a_reopening(shop: Shop) -> None:
    """Also in another process, which knows nothing of the first."""
    shop.stock(20)
    keys: defaultdict[int, list[str]] = defaultdict(list)

    def work(row: Any, record_key: str) -> str:
        keys[row.id].append(record_key)
        if row.id % 5 == 0 and len(keys[row.id]) < 3:
            raise ValueError("not yet")
        return "yes"

    shop.records(work).run()
    assert [len(keys[i]) for i in (5, 10, 6)] == [3, 3, 1]
    assert all(len(set(told)) == 1 for told in keys.values())
    assert len({told[0] for told in keys.values()}) == 20
    first = {i: told[0] for i, told in keys.items()}
    again = shop.records(work)
    assert again.reopen() == 20
    again.run()
    assert not {told[-1] for told in keys.values()} & set(first.values())


def test_a_retried_record_keeps_its_key(corner_shop: Shop) -> None:
    """FAILED and tried again, it is still the same pass: the provider may have done it."""
    corner_shop.stock(1)
    keys: list[str] = []

    async def work(row: Any, *, record_key: str) -> str:
        keys.append(record_key)
        if len(keys) == 1:
            raise ValueError(row.id)
        return "yes"

    records = corner_shop.records(work, attempts=1)
    assert records.run().failed == 1
    records.retry()
    assert records.run().counts.done == 1
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_call_with_several_records_gets_their_keys_in_their_order(corner_shop: Shop) -> None:
    """The same as they would get alone."""
    corner_shop.stock(10)
    keys: dict[int, str] = {}

    def work(rows: list[Any], record_key: list[str]) -> list[str]:
        assert len(rows) == len(record_key)
        keys.update({row.id: key for row, key in zip(rows, record_key, strict=True)})
        raise ValueError("one by one")

    def alone(row: Any, record_key: str) -> str:
        assert keys[row.id] == record_key
        return "yes"

    corner_shop.records(work, per_call=5, attempts=1, circuit=False).run()
    records = corner_shop.records(alone)
    records.retry()
    assert records.run().counts.done == 10
