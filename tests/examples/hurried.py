"""Runs an example in a hurry, its jobs due each second: `python -m tests.examples.hurried 1s MODULE serve`.

The program is the user's, unchanged; only the schedules of its jobs are replaced before it starts.
"""

from __future__ import annotations

import importlib
import logging
import sys
from dataclasses import replace
from types import ModuleType

from tickoff.schedules.schedule import every


def hurry(program: ModuleType, period: str) -> None:
    """Make its jobs due once a period."""
    carried = program.jobs._jobs
    carried.update({name: replace(job, schedule=every(period)) for name, job in carried.items()})


def main(period: str, module: str, *command: str) -> None:
    """Import the program, hurry its jobs, and start it."""
    logging.basicConfig(level=logging.INFO)
    program = importlib.import_module(module)
    hurry(program, period)
    START[command[0]](program, *command[1:])


def serve(program: ModuleType) -> None:
    """As `tickoff serve --app MODULE` does."""
    program.jobs.serve()


def uvicorn(program: ModuleType, port: str) -> None:
    """As `uvicorn MODULE:app` does."""
    import uvicorn

    uvicorn.run(program.app, host="127.0.0.1", port=int(port), log_level="warning")


def flask(program: ModuleType) -> None:
    """As `flask --app MODULE jobs` does."""
    from flask.cli import cli

    cli.main(["--app", program.__name__, "jobs"])


def apscheduler(program: ModuleType) -> None:
    """As `python -m MODULE` does, with APScheduler firing each second."""
    program.scheduler.reschedule_job("import-products", trigger="interval", seconds=1)
    program.scheduler.start()


def beat(program: ModuleType, folder: str) -> None:
    """As `celery -A MODULE beat` does, with a beat each second."""
    program.app.conf.beat_schedule["import-products"]["schedule"] = 1.0
    program.app.start(["beat", "--schedule", f"{folder}/beat", "--pidfile", "", "--loglevel", "INFO"])


def worker(program: ModuleType) -> None:
    """As `celery -A MODULE worker` does."""
    program.app.start(["worker", "--pool", "threads", "--concurrency", "4", "--loglevel", "INFO"])


START = {
    "serve": serve,
    "uvicorn": uvicorn,
    "flask": flask,
    "apscheduler": apscheduler,
    "beat": beat,
    "worker": worker,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
