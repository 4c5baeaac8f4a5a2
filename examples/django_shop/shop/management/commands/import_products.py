"""`manage.py import_products`, for the crontab of every server."""

from typing import Any

from django.core.management.base import BaseCommand

from shop.jobs import jobs, write_products
from tickoff import Tick


class Command(BaseCommand):
    """Import the products, once an hour, wherever it is called first."""

    @jobs.once("import-products-by-cron", cron="0 * * * *", tz="UTC", ttl="60s")
    def handle(self, *_args: Any, tick: Tick, **_options: Any) -> str:
        """The other servers get None, print nothing, and end with status 0."""
        return f"{write_products(tick)} products"
