"""Arrays as PostgreSQL reads them, written in a tenth of the driver's time where every item is plain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

Writer = Callable[[Sequence[Any]], Any]


def writer(kind: sa.types.TypeEngine[Any], driver: Writer | None) -> Writer | None:
    """What makes an array of this type ready to be sent; what is not plain is left to the driver."""
    item = kind.item_type if isinstance(kind, sa.ARRAY) else None
    if type(item) in _WHOLE:
        return lambda values: _numbers(values) or _prepared(values, driver)
    if type(item) in _WORDS:
        return lambda values: _texts(values) or _prepared(values, driver)
    return driver


_WHOLE = (sa.Integer, sa.BigInteger, sa.SmallInteger, sa.INTEGER, sa.BIGINT, sa.SMALLINT)
_WORDS = (sa.String, sa.Text, sa.VARCHAR, sa.TEXT)


def _prepared(values: Sequence[Any], driver: Writer | None) -> Any:
    return driver(values) if driver else values


def _numbers(values: Sequence[Any]) -> str | None:
    """Whole numbers only: Python writes a list of them as PostgreSQL reads it, but for the brackets."""
    return f"{{{repr(list(values))[1:-1]}}}" if set(map(type, values)) == {int} else None


def _texts(values: Sequence[Any]) -> str | None:
    """Texts and NULLs, without the two signs that mean something within quotes."""
    kinds = set(map(type, values))
    if not kinds <= {str, type(None)}:
        return None
    told = [value for value in values if value is not None] if type(None) in kinds else values
    together = "".join(told)
    if '"' in together or "\\" in together:
        return None
    if told is values:
        return '{"' + '","'.join(values) + '"}' if values else None
    return "{" + ",".join(["NULL" if value is None else f'"{value}"' for value in values]) + "}"
