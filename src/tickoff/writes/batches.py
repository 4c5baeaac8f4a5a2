"""Rows in batches: read as they come, checked one by one, the last of each key kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from ..errors import ConfigError
from .target import Target

BATCH = 1000
"""Rows written by one statement."""

Row = Mapping[str, Any]
Batch = list[list[Any]]
"""Values by column."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns that all rows have, in the order of the first, and the batches of their values."""

    names: tuple[str, ...]
    batches: Iterator[tuple[int, Batch]]
    """How many rows were read, and the values to write: fewer where a key came twice."""


def rows_of(rows: Iterable[Row], target: Target) -> Rows | None:
    """The rows, None when there are none."""
    stream = iter(_iterable(rows))
    first = next(stream, None)
    if first is None:
        return None
    names = _names(first, target)
    return Rows(names, _batches(first, stream, names, target))


def _iterable(rows: Iterable[Row]) -> Iterable[Row]:
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise ConfigError(
            f"rows={type(rows).__name__} is no series of rows; pass a list or a generator of dicts"
        )
    return rows


def _names(first: object, target: Target) -> tuple[str, ...]:
    if not isinstance(first, Mapping):
        raise _no_mapping(1, first)
    names = tuple(first)
    unknown = [name for name in names if name not in target.columns]
    if unknown:
        raise ConfigError(
            f"row 1 has {_listed(unknown)}, which {target.table.fullname} has not; "
            f"its columns are {', '.join(target.columns)}"
        )
    missing = [name for name in target.key if name not in names]
    if missing:
        raise ConfigError(f"row 1 has no {_listed(missing)}, which is the key; give every row its key")
    return names


def _batches(
    first: Row, rest: Iterator[Row], names: tuple[str, ...], target: Target
) -> Iterator[tuple[int, Batch]]:
    places = [names.index(name) for name in target.key]
    chunk, number = [first, *islice(rest, BATCH - 1)], 1
    while chunk:
        batch = _columns(chunk, names, number)
        _refuse_empty_keys(batch, places, target, number)
        yield len(chunk), _last_of_each(batch, places)
        number += len(chunk)
        chunk = list(islice(rest, BATCH))


def _columns(chunk: list[Row], names: tuple[str, ...], number: int) -> Batch:
    """The values by column; checked all at once, because nearly always nothing is wrong."""
    if set(map(type, chunk)) != {dict} or sum(map(len, chunk)) != len(chunk) * len(names):
        _check_each(chunk, names, number)
    try:
        return [list(map(itemgetter(name), chunk)) for name in names]
    except KeyError:
        _check_each(chunk, names, number)
        raise


def _last_of_each(batch: Batch, places: list[int]) -> Batch:
    """Without the rows whose key comes again further down."""
    last = {key: row for row, key in enumerate(zip(*(batch[place] for place in places), strict=True))}
    if len(last) == len(batch[0]):
        return batch
    return [[column[row] for row in last.values()] for column in batch]


def _check_each(chunk: list[Row], names: tuple[str, ...], number: int) -> None:
    for place, row in enumerate(chunk, number):
        _check(row, names, place)


def _check(row: object, names: tuple[str, ...], number: int) -> None:
    if not isinstance(row, Mapping):
        raise _no_mapping(number, row)
    if set(row) == set(names):
        return
    lacks = [name for name in names if name not in row]
    more = [name for name in row if name not in names]
    said = [f"lacks {_listed(lacks)}"] * bool(lacks) + [f"has {_listed(more)} beside"] * bool(more)
    raise ConfigError(
        f"row {number} {' and '.join(said)}, unlike row 1; all rows of an upsert need the same columns: "
        "fill them up, or upsert each kind by itself"
    )


def _refuse_empty_keys(batch: Batch, places: list[int], target: Target, number: int) -> None:
    for name, place in zip(target.key, places, strict=True):
        if None in batch[place]:
            raise ConfigError(
                f"row {number + batch[place].index(None)} has None in its key {name!r}; "
                "no unique index stops a second one like it, so give it a key"
            )
    if target.counts_from_zero and 0 in batch[places[0]]:
        raise ConfigError(
            f"row {number + batch[places[0]].index(0)} has 0 in its key {target.key[0]!r}, where MySQL puts "
            "the next free number; begin at 1, or take AUTO_INCREMENT off the column"
        )


def _no_mapping(number: int, row: object) -> ConfigError:
    return ConfigError(
        f"row {number} is of type {type(row).__name__}; pass mappings of column to value, such as dicts"
    )


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)
