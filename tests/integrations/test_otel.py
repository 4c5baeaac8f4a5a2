"""Spans as an exporter receives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tickoff.integrations.otel import trace
from tickoff.ticks.events import Event, Kind

if TYPE_CHECKING:
    from tests.integrations.conftest import Shop


def test_each_run_is_a_span_with_its_tick_and_its_error(shop: Shop) -> None:
    """As long as the run was; a failure has the exception."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace(shop.jobs, provider)
    with shop.run():
        pass
    spans = {span.name: span for span in exporter.get_finished_spans()}
    good, bad = spans["tick shop:good"], spans["tick shop:bad"]
    assert good.attributes["tickoff.ticks.job"] == "shop:good"
    assert good.attributes["tickoff.outcome"] == "ok"
    assert good.attributes["tickoff.fence"] > 0
    assert good.attributes["faas.trigger"] == "timer"
    assert good.end_time - good.start_time >= 9_000_000
    assert good.status.status_code is StatusCode.UNSET
    assert (bad.status.status_code, bad.status.description) == (StatusCode.ERROR, "ValueError: out of stock")
    assert [event.attributes["exception.type"] for event in bad.events] == ["ValueError"]


def test_a_missed_tick_is_a_span_that_is_an_error(shop: Shop) -> None:
    """So that who alarms on spans alarms on it."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace(shop.jobs, provider)
    shop.jobs._events.tell(Event(kind=Kind.MISSED, job="shop:good", tick=1000, error="nobody"))
    (span,) = exporter.get_finished_spans()
    assert (span.attributes["tickoff.outcome"], span.status.description) == ("missed", "nobody")
