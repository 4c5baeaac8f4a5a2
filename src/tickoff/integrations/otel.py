"""OpenTelemetry: a span for each run, written when it ends (extra `otel`).

    from tickoff.integrations.otel import trace

    trace(jobs)

Batch jobs have no agreed names for attributes yet: ours begin with `tickoff.`, beside `faas.trigger`.
"""

from __future__ import annotations

import time

from ..app import Tickoff
from ..errors import ConfigError
from ..model import Outcome, moment
from ..ticks.events import Event

try:
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, get_tracer
except ModuleNotFoundError as missing:
    raise ConfigError(f"{missing.name} is missing; run: pip install 'tickoff[otel]'") from missing


def trace(jobs: Tickoff, provider: TracerProvider | None = None) -> None:
    """Write a span for each run of an application, and one without length for each tick that was missed."""
    tracer = get_tracer("tickoff", tracer_provider=provider)

    def write(event: Event) -> None:
        end = time.time_ns()
        span = tracer.start_span(
            f"tick {event.job}",
            kind=SpanKind.INTERNAL,
            start_time=end - round(event.seconds * 1e9),
            attributes=_attributes(event),
        )
        if event.cause is not None:
            span.record_exception(event.cause)
        if event.outcome is not Outcome.OK:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(end)

    jobs.on("ended", write)
    jobs.on("missed", write)


def _attributes(event: Event) -> dict[str, str | int | bool]:
    return {
        "faas.trigger": "other" if event.manual else "timer",
        "tickoff.ticks.job": event.job,
        "tickoff.ticks.tick": moment(event.tick).isoformat(),
        "tickoff.fence": event.fence,
        "tickoff.attempt": event.attempt,
        "tickoff.manual": event.manual,
        "tickoff.outcome": str(event.outcome or event.kind),
    }
