"""Records: `@jobs.each(...)` says what to do with each row, `jobs.records(NAME)` steers and shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..durations import Duration
from ..errors import ConfigError
from ..eventloop import EventLoop
from .core import Core
from .databases import database_target

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ..records.job import RecordJob
    from ..records.operator import Records

F = TypeVar("F", bound=Callable[..., Any])

Columns = str | Sequence[str]


class Each(Core):
    """Jobs over records in the users' own tables."""

    _record_jobs: dict[str, RecordJob]
    _record_loop: EventLoop | None = None

    def each(
        self,
        table: str,
        *,
        status: str,
        key: Columns = (),
        result: Columns = (),
        where: str | sa.ColumnElement[bool] | None = None,
        columns: Columns | None = None,
        per_call: int | None = None,
        concurrency: int = 1,
        ttl: Duration = "5m",
        timeout: Duration | None = None,
        attempts: int = 5,
        backoff: Duration | tuple[Duration, Duration] = "1s",
        name: str | None = None,
    ) -> Callable[[F], F]:
        """Call the function once for each row of a table, all servers together; it comes back unchanged.

        `status` is the column of states; the answer is written to `result`, a column or several; `where`
        is SQL of yours, or an SQLAlchemy expression, that says which rows are meant.
        """
        from ..records.reading import read_job

        described = read_job(
            table,
            status=status,
            key=key,
            result=result,
            where=where,
            columns=columns,
            per_call=per_call,
            concurrency=concurrency,
            ttl=ttl,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            name=name,
        )

        def register(function: F) -> F:
            self._add_record_job(described.of(function))
            return function

        return register

    def records(self, name: str) -> Records:
        """The records of a job of this application: to reopen, retry, pause, resume, sweep, watch or run."""
        job = self._jobs_over_records().get(name)
        if job is None:
            known = ", ".join(self._jobs_over_records()) or "none"
            raise ConfigError(f"no job over records is named {name!r}; those there are: {known}")
        return self._open_records(job)

    def record_names(self) -> list[str]:
        """The names of the jobs over records, in the order of their decorators."""
        return list(self._jobs_over_records())

    def _jobs_over_records(self) -> dict[str, RecordJob]:
        """By their names without the namespace, in the order of their decorators."""
        if not hasattr(self, "_record_jobs"):
            self._record_jobs = {}
        return self._record_jobs

    def _add_record_job(self, job: RecordJob) -> None:
        """Take a job in, in the place of an older definition of the same function."""
        former = self._jobs_over_records().get(job.name)
        if former is not None and former.written_at != job.written_at:
            raise ConfigError(
                f"two functions are named {job.name!r}: {former.written_at} and {job.written_at}; "
                "give one of them another name="
            )
        self._jobs_over_records()[job.name] = job

    def _open_records(self, job: RecordJob) -> Records:
        from ..records.names import names_of
        from ..records.operator import Records
        from ..tables import open_table

        named = replace(job, name=self._full(job.name))
        table = open_table(database_target(self._database, self._url), job.plan)
        if self._record_loop is None:
            self._record_loop = EventLoop()
        return Records(named, names_of(job.name, self._full), table, self._ready(), self._record_loop)
