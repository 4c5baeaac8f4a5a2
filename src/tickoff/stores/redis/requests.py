"""The keys of a name, and what is sent to the scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from secrets import token_hex
from typing import Any, TypeVar

from ...model import Bid, Ending
from ..wire import bid_values, ending_values

T = TypeVar("T")

Request = tuple[Any, ...]
"""The number of keys, the keys, the values: what EVALSHA takes after the digest."""

AT_ONCE = 250
"""So many bids or endings are decided by one script: others wait meanwhile, a few milliseconds."""

_LOCK, _META, _META_END = "lock:", "tickoff:{lock:", "}"
_PURSE = "tickoff:{race:"

_UNSENT = {"name", "blank"}


def keys_of(name: str, token: str = "") -> tuple[str, ...]:
    """The lock, our data of the name, its history, the token let go last, the tombstone of a token."""
    meta = f"{_META}{name}{_META_END}"
    tombstone = (f"{meta}:withdrawn:{token}",) if token else ()
    return (f"lock:{name}", meta, f"{meta}:runs", f"{meta}:let-go", *tombstone)


def board_of(board: str) -> str:
    """The key of a board."""
    return f"tickoff:{{board:{board}}}"


def rate_of(name: str) -> str:
    """The key of a rate."""
    return f"tickoff:{{rate:{name}}}"


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


def race_requests(bids: Sequence[Bid], limit: int) -> list[Request]:
    """The requests of the race script: so many bids each that Redis serves others in between."""
    parts = parts_of(bids)
    purse = (f"{_PURSE}{token_hex(8)}{_META_END}",) if limit < len(bids) and len(parts) > 1 else ()
    return [race_request(part, limit, purse) for part in parts]


def race_request(bids: Sequence[Bid], limit: int, purse: tuple[str, ...] = ()) -> Request:
    """Five keys a bid, the purse if it is one of several, then how many may be won, then the bids."""
    keys = [key for bid in bids for key in keys_of(bid.name, bid.token)]
    return (len(keys) + len(purse), *keys, *purse, limit, *map(_bid_sent, bids))


def _bid_sent(bid: Bid) -> str:
    """What a common bid says, put together by hand, since many are sent at once; else all of it."""
    known = bid.known
    if known.steered or bid.manual:
        return sent(bid_values(bid))
    return (
        f'{{"token":"{bid.token}","owner":{_quoted(bid.owner)},"ttl":{bid.ttl},"tick":{bid.tick},'
        f'"attempts":{bid.attempts},"takeover":{bid.takeover:d},"scheduled":{bid.scheduled:d},'
        f'"fence":{known.fence},"decided":{known.decided},"finished":{known.finished},"since":{known.since},'
        f'"known_ttl":{known.ttl}}}'
    )


_quoted = lru_cache(maxsize=64)(json.dumps)


def settle_request(endings: Sequence[Ending]) -> Request:
    """Four keys an ending, then the endings."""
    named = read_request([ending.hold.name for ending in endings])
    return (*named, *(sent(ending_values(ending)) for ending in endings))


def read_request(names: Sequence[str]) -> Request:
    """Four keys a name."""
    keys = [key for name in names for key in keys_of(name)]
    return (len(keys), *keys)


def parts_of(wanted: Sequence[T]) -> list[Sequence[T]]:
    """So many at a time as one script may decide."""
    return [wanted[i : i + AT_ONCE] for i in range(0, len(wanted), AT_ONCE)]


def sent(values: dict[str, Any]) -> str:
    """A request for a script: what is nothing is left out, and the name, which the keys tell."""
    return json.dumps({field: value for field, value in values.items() if value and field not in _UNSENT})
