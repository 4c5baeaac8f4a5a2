"""Records: `@jobs.each(...)` says what to do with each row, `jobs.records(NAME)` steers and shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..durations import Duration
from ..errors import ConfigError
from ..names import check_name
from ..serve import Service
from ..work import refuse_lazy, refuse_rowless
from .databases import database_target
from .scheduled import Scheduled, name_of

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ..records.job import RecordJob
    from ..records.operator import Records

F = TypeVar("F", bound=Callable[..., Any])

Columns = str | Sequence[str]


class Each(Scheduled):
    """Jobs over records in the users' own tables."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._record_jobs: dict[str, RecordJob] = {}
        self._records: dict[str, Records] = {}

    def each(
        self,
        table: str,
        *,
        status: str,
        key: Columns = (),
        result: Columns = (),
        where: str | sa.ColumnElement[bool] | None = None,
        columns: Columns | None = None,
        companion: bool | str = False,
        per_call: int | None = None,
        concurrency: int | Literal["auto"] | tuple[int, int] = 1,
        rate: str | None = None,
        flush: int | None = None,
        circuit: bool = True,
        ttl: Duration = "5m",
        timeout: Duration | None = None,
        attempts: int = 5,
        backoff: Duration | tuple[Duration, Duration] = "1s",
        name: str | None = None,
    ) -> Callable[[F], F]:
        """Call the function once for each row of a table, all servers together; it comes back unchanged.

        `status` is the column of states; the answer is written to `result`, a column or several; `where`
        is SQL of yours, or an SQLAlchemy expression, that says which rows are meant. With `companion`, states
        and answers are kept in a table beside yours, which is only read.
        """
        from ..records.reading import read_job

        described = read_job(
            table,
            status=status,
            key=key,
            result=result,
            where=where,
            columns=columns,
            companion=companion,
            per_call=per_call,
            concurrency=concurrency,
            rate=rate,
            flush=flush,
            circuit=circuit,
            ttl=ttl,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
        )
        if name is not None:
            check_name(name)

        def register(function: F) -> F:
            refuse_lazy(function)
            refuse_rowless(function, "a row" if per_call is None else "a list of rows")
            called = name or name_of(function)
            self._refuse_taken(called, function)
            self._record_jobs[called] = described.of(function, called)
            self._records.pop(called, None)  # of a former definition
            return function

        return register

    def records(self, name: str) -> Records:
        """The records of a job of this application: to reopen, retry, pause, resume, sweep, watch or run."""
        job = self._record_jobs.get(name) if isinstance(name, str) else None
        if job is None:
            known = ", ".join(self._record_jobs)
            remedy = f"it has: {known}" if known else "it has none; decorate a function with @jobs.each"
            raise ConfigError(f"{name!r} is no job over records of this application; {remedy}")
        if name not in self._records:  # one for all who ask: each would have connections of its own
            self._records[name] = self._open_records(job)
        return self._records[name]

    def close(self) -> None:
        """Stop the threads and close the connections, those to tables with records included."""
        opened, self._records = self._records, {}
        for records in opened.values():
            records.close()
        super().close()

    def record_names(self) -> list[str]:
        """The names of the jobs over records, in the order of their decorators."""
        return list(self._record_jobs)

    def _function(self, name: str) -> Callable[..., Any] | None:
        job = self._record_jobs.get(name)
        return super()._function(name) if job is None else job.function

    def _record_workers(self, only: str | None = None) -> list[Service]:
        """A worker for each job, to be served."""
        return [
            self._open_records(job).worker() for job in self._record_jobs.values() if only in (None, job.name)
        ]

    def _open_records(self, job: RecordJob) -> Records:
        from ..records.names import names_of
        from ..records.operator import Records
        from ..tables import open_table

        named = replace(job, name=self._full(job.name))
        table = open_table(database_target(self._database, self._url), job.plan)
        return Records(named, names_of(job.name, self._full), table, self._ready(), self._eventloop)
