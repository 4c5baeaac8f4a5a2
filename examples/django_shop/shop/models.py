"""What the shop sells."""

from django.db import models


class Product(models.Model):
    """A product of the supplier's, by the supplier's number."""

    number = models.IntegerField(unique=True)
    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name
