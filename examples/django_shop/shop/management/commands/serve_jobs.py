"""`manage.py serve_jobs`: no crontab at all; run it on every server, under systemd or in a container."""

import logging
from typing import Any

from django.core.management.base import BaseCommand

from shop.jobs import jobs


class Command(BaseCommand):
    """Run the jobs until SIGTERM."""

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Block."""
        logging.basicConfig(level=logging.INFO)
        jobs.serve()
