"""`@jobs.each(...)` and `jobs.records(...)`: what they refuse, their names, the database they use."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa

from tests.records.shop import NAME, Shop, eventually
from tickoff import Tickoff
from tickoff.errors import ConfigError


def enrich(row: Any) -> str:
    """A job's function."""
    return f"a{row.id}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"concurrency": True}, "concurrency=True"),
        ({"attempts": 0}, "attempts is out of range"),
        ({"per_call": 0}, "per_call is out of range"),
        ({"ttl": 0}, "ttl=0"),
        ({"timeout": "-1"}, "timeout="),
        ({"timeout": 0}, "timeout=0"),
        ({"backoff": ("10m", "1s")}, "backoff="),
        ({"backoff": ("1s", "2s", "3s")}, "backoff="),
        ({"status": ""}, "status=''"),
        ({"result": ("a", "a")}, "twice"),
        ({"key": 3}, "key=3"),
        ({"where": 7}, "where=7"),
        ({"where": " "}, "where="),
        ({"columns": [1]}, "columns=1"),
        ({"name": "a{b"}, "brace"),
    ],
)
def test_a_wrong_argument_is_refused_when_decorating_by_its_name(options: dict[str, Any], said: str) -> None:
    """Before anything is connected to."""
    jobs = Tickoff("memory://")
    with pytest.raises(ConfigError, match=said.replace("{", r"\{")):
        jobs.each("contacts", **{"status": "status", **options})(enrich)


def test_the_function_comes_back_unchanged_and_names_the_job() -> None:
    """With dashes; decorated again it takes its own place, another one may not have it."""
    jobs = Tickoff("memory://", database="sqlite:///shop.db")

    def import_all(row: Any) -> None:
        """Anything."""

    assert jobs.each("contacts", status="status")(import_all) is import_all
    jobs.each("contacts", status="status")(import_all)
    assert jobs.record_names() == ["import-all"]
    with pytest.raises(ConfigError, match="import-all"):
        jobs.each("contacts", status="status", name="import-all")(enrich)
    with pytest.raises(ConfigError, match="import-all"):
        jobs.every("30s", name="import-all")(lambda: None)


def test_the_records_of_a_job_are_opened_once_and_closed_with_the_application(corner_shop: Shop) -> None:
    """A tick asks for them every night; each time anew, there would be more and more connections."""
    corner_shop.stock(1)
    jobs = corner_shop.jobs(enrich)
    records = jobs.records(NAME)
    assert records.progress().pending == 1
    assert jobs.records(NAME) is records
    jobs.close()
    again = jobs.records(NAME)
    assert again is not records
    assert again.progress().pending == 1


def test_where_there_is_no_job_over_records_the_decorator_is_named() -> None:
    """Somebody named the wrong application, or has not come that far."""
    with pytest.raises(ConfigError, match="it has none; decorate a function"):
        Tickoff("memory://").records("enrich")


def test_a_job_nobody_defined_is_refused_with_those_there_are() -> None:
    """The list helps against a slip of the pen."""
    jobs = Tickoff("memory://")
    jobs.each("contacts", status="status")(enrich)
    with pytest.raises(ConfigError, match="it has: enrich"):
        jobs.records("enrch")


def test_records_without_a_database_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is none cannot have tables."""
    monkeypatch.delenv("TICKOFF_DATABASE", raising=False)
    monkeypatch.delenv("TICKOFF_URL", raising=False)
    jobs = Tickoff("memory://")
    jobs.each("contacts", status="status")(enrich)
    with pytest.raises(ConfigError, match=r"the database with your table; name it: .* TICKOFF_DATABASE"):
        jobs.records("enrich")
    with pytest.raises(ConfigError, match="TICKOFF_DATABASE"), jobs:
        pass


def test_the_database_may_be_another_than_the_store(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by argument, or by the environment."""
    shop.stock(5)
    options = {"status": "status", "result": "answer"}
    with closing(Tickoff("memory://", database=shop.url)) as jobs:
        jobs.each(shop.table, **options)(enrich)
        with jobs.records("enrich") as records:
            assert records.run().counts.done == 5
    monkeypatch.setenv("TICKOFF_DATABASE", shop.url)
    with closing(Tickoff("memory://")) as jobs:
        jobs.each(shop.table, **options)(enrich)
        with jobs.records("enrich") as records:
            assert records.progress().done == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"status": "state"}, "state"),
        ({"result": "no_such"}, "no_such"),
        ({"key": "phone"}, "phone"),
        ({"columns": "no_such"}, "no_such"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_at_start(
    shop: Shop, options: dict[str, Any], said: str
) -> None:
    """By the pass and by serving alike, with what is missing."""
    shop.stock(1)
    with pytest.raises(ConfigError, match=said):
        shop.records(enrich, **options).run()
    with pytest.raises(ConfigError, match=said), shop.jobs(enrich, **options):
        pass


def test_with_jobs_works_records_beside_the_program(shop: Shop) -> None:
    """Rows that come later are found without anybody asking."""
    shop.stock(10)
    with shop.jobs(enrich):
        eventually(lambda: shop.states() == {"DONE": 10})
        shop.insert(range(11, 21))
        eventually(lambda: shop.states() == {"DONE": 20})


def test_two_colours_share_the_loop_of_the_process(corner_shop: Shop) -> None:
    """Within `async with jobs`, async functions run on the user's own loop."""
    corner_shop.stock(5)
    loops: set[Any] = set()

    async def work(row: Any) -> str:
        loops.add(asyncio.get_running_loop())
        return "yes"

    async def main() -> None:
        async with corner_shop.jobs(work):
            while corner_shop.states() != {"DONE": 5}:
                await asyncio.sleep(0.02)
        loops.add(asyncio.get_running_loop())

    asyncio.run(main())
    assert len(loops) == 1


def test_where_narrows_the_records(shop: Shop) -> None:
    """SQL of the user's, or an expression."""
    shop.stock(10)
    assert shop.records(enrich, where="id <= 3").run().counts.done == 3
    assert shop.records(enrich, where=sa.column("id") > 8).run().counts.done == 2
    assert shop.states() == {"DONE": 5, "PENDING": 5}


def test_retry_and_reopen_make_rows_pending_again(shop: Shop) -> None:
    """The failed with all their attempts; the done where asked for, and from a tick only those before it."""
    shop.stock(6)

    def work(row: Any) -> str:
        if row.id > 3:
            raise ValueError("even" if row.id % 2 == 0 else "odd")
        return "yes"

    records = shop.records(work, attempts=1)
    records.run()
    assert records.retry("%odd%") == 1
    assert shop.row(5)[::2] == ("PENDING", 0, None)
    assert records.retry() == 2
    assert records.reopen("id = 1") == 1
    assert shop.states() == {"DONE": 2, "PENDING": 4}


def test_a_tick_reopens_only_what_was_done_before_it(corner_shop: Shop) -> None:
    """So a tick that is tried again pays nothing twice: one reopens, all work."""
    corner_shop.stock(4)
    records = corner_shop.records(enrich)
    reopened: list[int] = []
    with closing(Tickoff("memory://")) as clock:

        @clock.every("1s")
        def nightly(tick: Any) -> None:
            if not reopened:
                records.run()
            reopened.append(records.reopen(tick=tick))

        with clock:
            eventually(lambda: len(reopened) >= 2)
    assert reopened[:2] == [0, 4]  # done after the first tick began, and before the second


def test_progress_adds_up_what_the_servers_say(corner_shop: Shop) -> None:
    """Counted once, and moved on by their reports."""
    corner_shop.stock(50)
    free = threading.Event()

    def work(row: Any) -> str:
        if row.id > 20:
            free.wait(30)
        return "yes"

    with corner_shop.jobs(work, concurrency=2) as jobs, jobs.records(NAME) as records:
        eventually(lambda: records.progress().done == 20)
        progress = records.progress()
        assert (progress.total, progress.failed) == (50, 0)
        assert progress.in_flight >= 2
        assert [one.counts.done for one in progress.servers] == [20]
        assert progress.possibly_repeated >= 2
        free.set()
        eventually(lambda: records.progress().done == 50)
