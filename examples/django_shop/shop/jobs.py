"""One Tickoff for the project, and what it runs by itself."""

from django.conf import settings
from django.db import close_old_connections, connection, transaction

from tickoff import Tick, Tickoff

jobs = Tickoff(settings.TICKOFF_URL, namespace="shop")

FEED = [(1, "tea"), (2, "coffee")]


@jobs.cron("0 * * * *", tz="UTC", ttl="60s")
def import_products(tick: Tick) -> None:
    """Each hour, on one server; a late writer is refused."""
    close_old_connections()  # as Django does around a request
    write_products(tick)


def write_products(tick: Tick) -> int:
    """Insert or update by the supplier's number, in a transaction that only the newest run can commit."""
    from .models import Product

    with transaction.atomic():
        tick.guard(connection)
        products = [Product(number=number, name=name) for number, name in FEED]
        Product.objects.bulk_create(
            products, update_conflicts=True, unique_fields=["number"], update_fields=["name"]
        )
    return len(products)
