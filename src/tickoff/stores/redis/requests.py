"""The keys of a name, and what is sent to the scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...model import Bid
from ..wire import bid_values

Request = tuple[Any, ...]
"""The number of keys, the keys, the values: what EVALSHA takes after the digest."""

_LOCK, _META, _META_END = "lock:", "tickoff:{lock:", "}"

_UNSENT = {"name", "blank"}


def keys_of(name: str, token: str = "") -> tuple[str, ...]:
    """The lock, our data of the name, its history, the token let go last, the tombstone of a token."""
    meta = f"{_META}{name}{_META_END}"
    tombstone = (f"{meta}:withdrawn:{token}",) if token else ()
    return (f"lock:{name}", meta, f"{meta}:runs", f"{meta}:let-go", *tombstone)


def board_of(board: str) -> str:
    """The key of a board."""
    return f"tickoff:{{board:{board}}}"


def patterns(prefix: str) -> tuple[str, str]:
    """What the keys of names with a prefix look like: of our data, and of the locks themselves."""
    literal = "".join(f"\\{c}" if c in "*?[]\\" else c for c in prefix)
    return f"{_META}{literal}*{_META_END}", f"{_LOCK}{literal}*"


def name_in(key: bytes) -> str:
    """The name a key is about; a lock's key may be any program's."""
    text = key.decode("utf-8", "replace")
    return text[len(_LOCK) :] if text.startswith(_LOCK) else text[len(_META) : -len(_META_END)]


def request(name: str, *values: str | int, token: str = "") -> Request:
    """A request about one name."""
    keys = keys_of(name, token)
    return (len(keys), *keys, *values)


def lock_request(bid: Bid) -> Request:
    """The request of the lock script, for a plain bid."""
    known = bid.known
    return request(bid.name, bid.token, bid.owner, bid.ttl, known.fence, known.ttl, token=bid.token)


def race_request(bids: Sequence[Bid], limit: int) -> Request:
    """The request of the race script: five keys a bid, then how many may be won, then the bids."""
    keys = [key for bid in bids for key in keys_of(bid.name, bid.token)]
    return (len(keys), *keys, limit, *(sent(bid_values(bid)) for bid in bids))


def sent(values: dict[str, Any]) -> str:
    """A request for a script: what is nothing is left out, and the name, which the keys tell."""
    return json.dumps({field: value for field, value in values.items() if value and field not in _UNSENT})
