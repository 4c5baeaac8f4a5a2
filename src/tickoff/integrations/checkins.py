"""Check-ins with a watchdog elsewhere: a URL in the manner of healthchecks, or Sentry's crons.

    from tickoff.integrations.checkins import ping, sentry

    ping(jobs, "import-products", "https://hc-ping.com/<uuid>")
    sentry(jobs, "import-products", dsn, slug="import-products")

Only the server that ran a tick checks in, from a thread of its own: a watchdog that does not answer delays
nothing, and is logged.
"""

from __future__ import annotations

import logging
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID, uuid5

from ..app import Tickoff
from ..errors import ConfigError
from ..ground import forks
from ..model import Outcome
from ..ticks.events import Event

_log = logging.getLogger("tickoff")

_LIMIT = 10.0
"""Seconds a watchdog has for its answer."""

_RUNS = UUID("8f6a2c1e-2f0b-4d55-9a35-7469636b6f66")
"""Our space of identifiers: the same run, the same identifier, whoever asks."""


def ping(jobs: Tickoff, job: str, url: str) -> None:
    """Ping `url/start` when a run of the job starts, `url` when it ends well, else `url/fail`, with why."""
    base = _checked(url).rstrip("/")

    def started(event: Event) -> None:
        _line().send(f"{base}/start?rid={_run(event)}", b"")

    def ended(event: Event) -> None:
        well = event.outcome is Outcome.OK
        _line().send(f"{base}{'' if well else '/fail'}?rid={_run(event)}", event.error.encode())

    jobs.on("started", started, job=job)
    jobs.on("ended", ended, job=job)


def sentry(jobs: Tickoff, job: str, dsn: str, slug: str, environment: str = "production") -> None:
    """Check in with the monitor `slug` of a Sentry project: in progress, then ok or error."""
    monitor = _monitor(dsn, slug)

    def tell(event: Event, status: str) -> None:
        told = {"status": status, "check_in_id": _run(event).hex, "environment": environment}
        _line().send(f"{monitor}?{urlencode(told)}", None)

    jobs.on("started", lambda event: tell(event, "in_progress"), job=job)
    jobs.on("ended", lambda event: tell(event, "ok" if event.outcome is Outcome.OK else "error"), job=job)


def _run(event: Event) -> UUID:
    return uuid5(_RUNS, f"{event.job} {event.tick} {event.fence}")


def _checked(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"url={url!r:.80} is no web address; write https://hc-ping.com/… or your own")
    return url


def _monitor(dsn: str, slug: str) -> str:
    """Where the check-ins of a monitor go: the DSN is scheme://key@host/path/project."""
    parts = urlsplit(dsn)
    folder, _, project = parts.path.rpartition("/")
    if parts.scheme not in ("http", "https") or not parts.username or not project:
        raise ConfigError("the DSN cannot be read; copy it from the project's settings: https://key@host/1")
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{folder}/api/{project}/cron/{quote(slug, safe='')}/{parts.username}/"


class _Line:
    """One thread for all check-ins of a process, so that those of a run arrive in order."""

    def __init__(self) -> None:
        self.after_fork()
        forks.tell(self)

    def after_fork(self) -> None:
        """A child begins its own."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tickoff-checkins")

    def send(self, url: str, body: bytes | None) -> None:
        """Send soon: POST with a body, GET without."""
        self._thread.submit(_sent, url, body)


@lru_cache(maxsize=1)
def _line() -> _Line:
    return _Line()


def _sent(url: str, body: bytes | None) -> None:
    try:
        urllib.request.urlopen(url, data=body, timeout=_LIMIT).close()  # noqa: S310 - the scheme was checked
    except (urllib.error.URLError, OSError, ValueError) as error:
        _log.warning("%s could not be told of a run: %s", urlsplit(url).hostname, error)
