"""A Flask application, and its jobs in a process beside the web workers.

Two processes on every server:

    export TICKOFF_URL=redis://localhost:6379/0
    gunicorn examples.flask_app:app
    flask --app examples.flask_app jobs
"""

from __future__ import annotations

import logging
import time

from flask import Flask, Response, jsonify

from tickoff import LockHeld, Tick, Tickoff

jobs = Tickoff()
app = Flask(__name__)


@jobs.cron("0 * * * *", tz="UTC")
def import_products(tick: Tick) -> None:
    """On one server, each hour, inside an application context as Flask's extensions want it."""
    with app.app_context():
        app.logger.warning("importing for %s", tick.at)


@app.cli.command("jobs")
def serve() -> None:
    """Run the jobs until SIGTERM."""
    logging.basicConfig(level=logging.INFO)
    jobs.serve()


@app.post("/reindex")
def reindex() -> tuple[Response, int]:
    """A lock, for something that must not run twice at a time."""
    try:
        with jobs.lock("reindex", ttl="30s") as lease:
            time.sleep(0.5)
            return jsonify(fence=lease.fence), 200
    except LockHeld as held:
        return jsonify(error=str(held)), 409
