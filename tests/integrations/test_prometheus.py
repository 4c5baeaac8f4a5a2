"""Metrics as Prometheus sees them: scraped by HTTP, read by its own parser."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from tickoff import Tickoff
from tickoff.integrations.prometheus import measure, measure_records
from tickoff.ticks.events import Event, Kind

if TYPE_CHECKING:
    from tests.integrations.conftest import Shop


def scraped(registry: CollectorRegistry) -> dict[tuple[str, str, str], float]:
    """What a scrape finds: (sample, job, outcome or state) and its value."""
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation for family in families)
    return {
        (sample.name, sample.labels["job"], _which(sample.labels)): sample.value
        for family in families
        for sample in family.samples
    }


def _which(labels: dict[str, str]) -> str:
    return labels.get("outcome") or labels.get("state") or ""


def test_ticks_are_counted_by_outcome_with_their_duration_and_last_success(shop: Shop) -> None:
    """The main signal of a batch job is when it last ended well."""
    registry = CollectorRegistry()
    measure(shop.jobs, registry)
    with shop.run():
        pass
    found = scraped(registry)
    assert found["tickoff_ticks_total", "shop:good", "ok"] >= 1
    assert found["tickoff_ticks_total", "shop:bad", "failed"] >= 1
    assert abs(found["tickoff_last_success_timestamp_seconds", "shop:good", ""] - time.time()) < 60
    assert ("tickoff_last_success_timestamp_seconds", "shop:bad", "") not in found
    ran = found["tickoff_run_duration_seconds_count", "shop:good", ""]
    assert ran == found["tickoff_ticks_total", "shop:good", "ok"]
    assert found["tickoff_run_duration_seconds_sum", "shop:good", ""] >= 0.01 * ran
    assert found["tickoff_runs_in_progress", "shop:good", ""] == 0


def test_ticks_that_nobody_ran_are_counted_too(shop: Shop) -> None:
    """Skipped ones, and missed ones by their number."""
    registry = CollectorRegistry()
    measure(shop.jobs, registry)
    shop.jobs._events.tell(Event(kind=Kind.SKIPPED, job="shop:good", tick=1000))
    shop.jobs._events.tell(Event(kind=Kind.MISSED, job="shop:good", tick=1000, count=7))
    found = scraped(registry)
    assert found["tickoff_ticks_total", "shop:good", "skipped"] == 1
    assert found["tickoff_ticks_total", "shop:good", "missed"] == 7


def test_records_are_counted_by_state_when_scraped(tmp_path: Path) -> None:
    """Registering connects to nothing; a database that is away leaves the other jobs their samples."""
    import sqlalchemy as sa

    database = f"sqlite:///{tmp_path}/shop.db"
    jobs = Tickoff("memory://", database=database)
    jobs.each("contacts", status="status", name="enrich")(_enriched)
    jobs.each("nowhere", status="status", name="lost")(_enriched)
    registry = CollectorRegistry(auto_describe=True)
    measure_records(jobs, registry)
    assert not (tmp_path / "shop.db").exists()
    with sa.create_engine(database).begin() as connection:
        connection.execute(sa.text("CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT)"))
        connection.execute(sa.text("INSERT INTO contacts (name) VALUES ('ann'), ('bob'), ('cid')"))
    with jobs.records("enrich") as records:
        records.table.install()
        records.run()
    found = scraped(registry)
    assert found["tickoff_records", "enrich", "done"] == 3
    assert found["tickoff_records", "enrich", "pending"] == 0
    assert ("tickoff_records", "lost", "done") not in found
    jobs.close()


def _enriched(contact: object) -> None:
    """Nothing to do, which is an answer."""
