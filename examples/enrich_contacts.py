"""Millions of phone numbers, one slow and flaky API that is paid by the call; every server helps.

On every server, as many as you like:

    export TICKOFF_URL=redis://localhost:6379/0 TICKOFF_DATABASE=postgresql://localhost/shop
    export LOOKUP_URL=https://lookup.example/api TICKOFF_APP=examples.enrich_contacts
    tickoff records install enrich    # once: adds the columns
    tickoff records run enrich
"""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Any

import httpx

from tickoff import Defer, Pause, Reject, Tickoff

jobs = Tickoff()
lookup = httpx.AsyncClient(base_url=os.environ["LOOKUP_URL"], timeout=20)


@jobs.each(
    "contacts",
    key="phone_number",
    status="aadhaar_status",
    result="aadhaar_number",
    concurrency=64,
    ttl="5m",
    attempts=5,
)
async def enrich(contact: Any) -> str | None:
    """Ask for one number. None is an answer: there is none, and nobody asks (and pays) again."""
    answer = await lookup.get(f"/{contact.phone_number}")
    match answer.status_code:
        case HTTPStatus.TOO_MANY_REQUESTS:  # their fault: later, and uncharged
            raise Defer(answer.headers.get("Retry-After", "10s"), "asked too often")
        case HTTPStatus.PAYMENT_REQUIRED:  # ours: all servers stop, `tickoff records resume enrich` goes on
            raise Pause("the budget is used up")
        case HTTPStatus.NOT_FOUND:  # this number's: never ask again
            raise Reject("not a phone number")
    answer.raise_for_status()  # anything else, such as a 503: tried five times, with growing pauses
    number: str | None = answer.json()["aadhaar_number"]
    return number


if __name__ == "__main__":
    jobs.serve()
