"""Lending calls of a rate: `tickoff.lending` as one upsert, which two servers cannot come between."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from . import schema
from .dialects import Dialect


def lend(dialect: Dialect) -> sa.Insert:
    """Lend `wanted_` of `limit_` calls in the window of `window_` ms that is now, `late_` of them late."""
    row = schema.loan.c
    window, limit = _number("window_"), _number("limit_")
    now = dialect.clock
    begun = now - now % window
    gone = _larger(limit * (now % window) // window - _number("late_"), sa.literal(0))
    over = row.begun == begun + window
    lent_before = sa.case((row.begun == begun, row.lent), else_=sa.literal(0))
    first = _larger(lent_before, gone)
    fresh = {"name": sa.bindparam("name_"), "first": gone, "lent": _after(gone, limit), "begun": begun}
    changed = {
        "first": sa.case((over, row.lent), else_=first),
        "lent": sa.case((over, row.lent), else_=_after(first, limit)),
        "begun": sa.case((over, row.begun), else_=begun),
    }
    return dialect.upsert_by(schema.loan, fresh, changed)


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def _after(first: sa.ColumnElement[Any], limit: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """How many are lent afterwards."""
    wanted = _number("wanted_")
    return first + _larger(sa.case((wanted < limit - first, wanted), else_=limit - first), sa.literal(0))


def _larger(one: sa.ColumnElement[Any], other: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.case((one > other, one), else_=other)
