"""Prometheus metrics of the ticks this process ran, skipped, or found missed (extra `prometheus`).

    from tickoff.integrations.prometheus import measure

    measure(jobs)
    prometheus_client.start_http_server(9464)

The counts are this process's; add them up over the fleet: `sum by (job, outcome) (tickoff_ticks_total)`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..app import Tickoff
from ..errors import ConfigError, TickoffError
from ..model import Outcome
from ..ticks.events import Event

if TYPE_CHECKING:
    from ..records.operator import Records

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise ConfigError(f"{missing.name} is missing; run: pip install 'tickoff[prometheus]'") from missing

_log = logging.getLogger("tickoff")

_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600)


class _Metrics:
    """The metrics on one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ticks = Counter(
            "tickoff_ticks", "Ticks by how they ended.", ["job", "outcome"], registry=registry
        )
        self.success = Gauge(
            "tickoff_last_success_timestamp_seconds",
            "When a tick last ended well in this process, in seconds since the epoch.",
            ["job"],
            registry=registry,
        )
        self.duration = Histogram(
            "tickoff_run_duration_seconds",
            "How long runs took.",
            ["job"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.running = Gauge("tickoff_runs_in_progress", "Runs under way.", ["job"], registry=registry)

    def started(self, event: Event) -> None:
        """One more is under way."""
        self.running.labels(event.job).inc()

    def ended(self, event: Event) -> None:
        """One less is; how it ended, and how long it took."""
        self.running.labels(event.job).dec()
        self.ticks.labels(event.job, event.outcome).inc()
        self.duration.labels(event.job).observe(event.seconds)
        if event.outcome is Outcome.OK:
            self.success.labels(event.job).set(time.time())

    def uneventful(self, event: Event) -> None:
        """A tick that nobody ran: skipped, or missed."""
        self.ticks.labels(event.job, event.kind).inc(event.count)


def measure(jobs: Tickoff, registry: CollectorRegistry = REGISTRY) -> None:
    """Count what happens to the ticks of an application; once per application and registry."""
    metrics = _Metrics(registry)
    jobs.on("started", metrics.started)
    jobs.on("ended", metrics.ended)
    jobs.on("skipped", metrics.uneventful)
    jobs.on("missed", metrics.uneventful)


def measure_records(jobs: Tickoff, registry: CollectorRegistry = REGISTRY) -> None:
    """Count the records of an application by state, at each scrape; one server of the fleet is enough."""
    registry.register(_RecordStates(jobs))


class _RecordStates(Collector):
    """Asks for progress when scraped; the tables are counted in full only now and then, whoever asks."""

    def __init__(self, jobs: Tickoff) -> None:
        self._jobs = jobs
        self._opened: dict[str, Records] = {}

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Known beforehand, so that registering connects to nothing."""
        yield _states()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The states of all jobs; a database that is away leaves out its own."""
        family = _states()
        for name in self._jobs.record_names():
            try:
                self._count(name, family)
            except TickoffError as error:
                _log.warning("the records of %s cannot be counted: %s", name, error)
        yield family

    def _count(self, name: str, family: GaugeMetricFamily) -> None:
        records = self._opened.get(name) or self._opened.setdefault(name, self._jobs.records(name))
        found = records.progress()
        for state in ("pending", "in_flight", "done", "failed"):
            family.add_metric([records.job.name, state], getattr(found, state))


def _states() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "tickoff_records", "Records by state, of the whole fleet.", labels=["job", "state"]
    )
