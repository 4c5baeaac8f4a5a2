"""`companion=True`: passes, and servers that die, with the states beside the user's table."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.records import test_crashes as crashes
from tests.records import test_identity as identity
from tests.records.conftest import DATABASES, opened
from tests.records.shop import Shop, eventually
from tickoff import Tickoff
from tickoff.errors import ConfigError

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(params=DATABASES)
def shop(request: pytest.FixtureRequest, url_of: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """A shop on each database in turn, its states in a companion."""
    yield from opened(request.param, url_of, tmp_path, beside=True)


test_a_record_that_kills_its_server_is_parked_and_no_bystander_is_charged = (
    crashes.test_a_record_that_kills_its_server_is_parked_and_no_bystander_is_charged
)
test_the_answer_of_a_server_that_was_stopped_past_its_claim_is_refused = (
    crashes.test_the_answer_of_a_server_that_was_stopped_past_its_claim_is_refused
)
test_sigterm_lets_calls_end_and_gives_the_rest_back_at_once = (
    crashes.test_sigterm_lets_calls_end_and_gives_the_rest_back_at_once
)
test_a_pause_said_elsewhere_is_obeyed_within_a_second = (
    crashes.test_a_pause_said_elsewhere_is_obeyed_within_a_second
)
test_the_key_of_a_record_is_the_same_at_each_attempt_and_new_after_a_reopening = (
    identity.test_the_key_of_a_record_is_the_same_at_each_attempt_and_new_after_a_reopening
)


def test_rows_added_removed_and_changed_during_a_pass_are_found(shop: Shop) -> None:
    """Added ones are worked in it, removed ones hold it up no more, changed ones are worked when asked."""
    shop.stock(30)
    calls: Counter[int] = Counter()
    once = threading.Event()

    def work(row: Any) -> str:
        calls[row.id] += 1
        if not once.is_set():
            once.set()
            shop.insert(range(-9, 1))
            shop.insert(range(100, 110))
            shop.sql(f"DELETE FROM {shop.table} WHERE id IN (29, 30)")
            shop.sql(f"UPDATE {shop.table} SET phone = 'new' WHERE id = {row.id}")
        return row.phone

    records = shop.records(work, concurrency=2)
    records.run()
    assert shop.states() == {"DONE": 48}
    assert set(calls.values()) == {1}
    (changed,) = [key for (key,) in shop.sql(f"SELECT id FROM {shop.table} WHERE phone = 'new'")]
    assert records.reopen(changed=True) == 1
    assert records.run().counts.done == 1
    assert calls[changed] == 2
    assert shop.row(changed)[:2] == ("DONE", "new")


def test_a_row_that_vanishes_while_all_wait_for_it_ends_the_pass(shop: Shop) -> None:
    """Charged and waiting for an hour, it would be waited for; gone, it is not."""
    shop.stock(3)

    def work(row: Any) -> str:
        if row.id == 2:
            threading.Timer(0.5, shop.sql, [f"DELETE FROM {shop.table} WHERE id = 2"]).start()
            raise ValueError("not yet")
        return "yes"

    passed = shop.records(work, backoff=("1h", "1h")).run()
    assert (passed.counts.done, passed.failed) == (2, 0)
    assert shop.states() == {"DONE": 2}


def test_serving_servers_find_rows_as_they_come_wherever_they_come(shop: Shop) -> None:
    """At the end at once, and in the middle when the table is walked again."""
    shop.stock(20)
    shop.sql(f"UPDATE {shop.table} SET id = id * 10 + 1000")
    with shop.server("answer", "serve", ttl="2s") as _, shop.server("answer", "serve", ttl="2s") as _:
        eventually(lambda: shop.states() == {"DONE": 20})
        shop.insert(range(2000, 2050))
        eventually(lambda: shop.states() == {"DONE": 70})
        shop.insert(range(1051, 1060))
        eventually(lambda: shop.states() == {"DONE": 79})
    assert shop.sql("SELECT count(*) FROM {t} WHERE status_attempts > 0") == [(0,)]


def test_progress_counts_rows_that_have_no_record_yet(shop: Shop) -> None:
    """They are PENDING, for whoever looks on."""
    shop.stock(7)
    records = shop.records(str)
    progress = records.progress()
    assert (progress.pending, progress.total) == (7, 7)


@pytest.mark.parametrize("companion", [1, "", None, "a\0b"])
def test_a_wrong_companion_is_refused_when_decorating(companion: Any) -> None:
    """By its name."""
    with pytest.raises(ConfigError, match="companion="):
        Tickoff("memory://").each("contacts", status="status", companion=companion)(print)
