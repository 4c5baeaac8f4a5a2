"""APScheduler 3 on every server: all of them fire, one runs.

On every server:

    TICKOFF_URL=redis://localhost:6379/0 python -m examples.apscheduler_app
"""

from __future__ import annotations

from apscheduler.schedulers.blocking import BlockingScheduler

from tickoff import Tick, Tickoff

jobs = Tickoff()
scheduler = BlockingScheduler(timezone="UTC")


@scheduler.scheduled_job("cron", minute=0, id="import-products", misfire_grace_time=300)
@jobs.once("import-products", cron="0 * * * *", tz="UTC", ttl="60s")
def import_products(tick: Tick) -> None:
    """APScheduler says when to try; Tickoff decides who, and which hour is meant."""
    print(f"importing for {tick.at:%H:%M}", flush=True)


if __name__ == "__main__":
    scheduler.start()
