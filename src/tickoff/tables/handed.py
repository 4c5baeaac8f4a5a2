"""Claimed rows as the user's function gets them, made when they are looked at.

A claim of a thousand records waits for a while. As plain tuples of plain values its rows are nothing to
Python's garbage collector, which otherwise spends as much time on them as all the rest of a worker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, overload

from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData

from .base import Record

_made: Callable[[tuple[Any, ...]], Record] = partial(tuple.__new__, Record)
"""A record from its parts, at a fifth of the price: a claim makes hundreds."""

_SOME = 50
"""So many are made at once when they are gone through."""


class Handed(Sequence[Record]):
    """Records from rows that begin with the user's columns and end with the attempts."""

    def __init__(
        self, rows: Sequence[Sequence[Any]], layout: SimpleResultMetaData, key_places: Sequence[int]
    ) -> None:
        self._rows = rows
        self._layout = layout
        self._width = len(layout.keys)
        self._key_places = key_places

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Record]:
        for begin in range(0, len(self._rows), _SOME):
            yield from self._records(self._rows[begin : begin + _SOME])

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        if isinstance(place, slice):
            return Handed(self._rows[place], self._layout, self._key_places)
        return self._records([self._rows[place]])[0]

    def _records(self, rows: Sequence[Sequence[Any]]) -> list[Record]:
        handed: IteratorResult[Any] = IteratorResult(self._layout, iter([row[: self._width] for row in rows]))
        keys = zip(*([row[i] for row in rows] for i in self._key_places), strict=True)
        return [*map(_made, zip(keys, handed.all(), [row[-1] for row in rows], strict=True))]
