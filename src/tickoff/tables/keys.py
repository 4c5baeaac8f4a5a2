"""Keys as text and back, for the ledger: what a driver gave is what it gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from ..errors import ConfigError
from .base import Key

_PLAIN = (str, int, float, bool, type(None))

_WRITE: dict[type, tuple[str, Callable[[Any], str]]] = {
    UUID: ("uuid", str),
    Decimal: ("decimal", str),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("microseconds", lambda span: str(span // timedelta(microseconds=1))),
    bytes: ("bytes", bytes.hex),
}
_READ: dict[str, Callable[[str], Any]] = {
    "uuid": UUID,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "microseconds": lambda text: timedelta(microseconds=int(text)),
    "bytes": bytes.fromhex,
}


def pack(keys: Sequence[Key]) -> str:
    """Keys as JSON text."""
    return json.dumps([[_packed(value) for value in key] for key in keys], separators=(",", ":"))


def unpack(text: str) -> list[Key]:
    """Keys from JSON text."""
    return [tuple(_unpacked(value) for value in key) for key in json.loads(text)]


def _packed(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if type(value) not in _WRITE:
        raise ConfigError(
            f"key: a value of {type(value).__name__} cannot be kept as text; use a key of numbers, texts, "
            "UUIDs, dates, times, decimals or bytes"
        )
    kind, write = _WRITE[type(value)]
    return {kind: write(value)}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return _READ[kind](text)


def typed(text: str, kind: type) -> Any:
    """A value of a key as somebody types it, in the type of its column."""
    try:
        return _TYPED.get(kind, str)(text)
    except (ValueError, ArithmeticError) as error:
        raise ConfigError(f"key: {text!r} is no {kind.__name__}, which the key column holds") from error


_TYPED: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: lambda text: text.lower() in {"1", "true", "t"},
    **{kind: _READ[name] for kind, (name, _) in _WRITE.items()},
}
