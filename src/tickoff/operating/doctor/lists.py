"""Many names in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 5
"""So many are told of one finding, and how many more there are."""


def listed(told: Sequence[str]) -> str:
    """The first few of them."""
    more = f"; and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return "; ".join(told[:_NAMED]) + more
