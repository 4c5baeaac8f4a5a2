"""A key for each record and pass, the same at every attempt: what APIs call an idempotency key."""

from __future__ import annotations

import hashlib
from uuid import UUID

from ..tables.base import Key, Record
from ..tables.keys import pack
from .claim import Call
from .job import RecordJob


def record_key(job: RecordJob, pass_name: str, key: Key) -> str:
    """A text of 36 characters, as of a UUID: nobody else's, nor this record's in another pass."""
    told = "\0".join((job.name, job.plan.table, job.plan.status, pass_name, pack([key])))
    return str(UUID(bytes=hashlib.sha256(told.encode()).digest()[:16], version=5))


def record_keys(job: RecordJob, call: Call) -> str | list[str]:
    """The key of the call's record, or of each of its records where it takes several."""

    def of(record: Record) -> str:
        return record_key(job, call.claim.pass_name, record.key)

    return of(call.records[0]) if job.per_call is None else [of(record) for record in call.records]
