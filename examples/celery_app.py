"""Celery with a beat on every server, so that no beat is the one that must not die.

On every server:

    export TICKOFF_URL=redis://localhost:6379/0 CELERY_BROKER_URL=redis://localhost:6379/1
    celery -A examples.celery_app worker --beat
"""

from __future__ import annotations

from celery import Celery
from celery.schedules import crontab

from tickoff import Tick, Tickoff

jobs = Tickoff()
app = Celery("shop")
app.conf.timezone = "UTC"
app.conf.beat_schedule = {
    "import-products": {
        "task": "import-products",
        "schedule": crontab(minute=0),
        "options": {"expires": 3000},  # a message that waited for most of an hour is of no use any more
    }
}


@app.task(name="import-products")
@jobs.once("import-products", cron="0 * * * *", tz="UTC", ttl="60s")
def import_products(tick: Tick) -> str:
    """Ten beats send ten messages; the first worker to take one runs it, the others return None."""
    return f"imported for {tick.at:%H:%M}"
