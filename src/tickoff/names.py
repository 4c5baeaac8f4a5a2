"""What a name may look like, who we are, and tokens nobody else can have."""

from __future__ import annotations

import secrets
import socket
import unicodedata
from functools import lru_cache

from .errors import ConfigError
from .ground.forks import pid
from .ground.world import world

LONGEST_NAME = 200

_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Signs that make the rest of a line read backwards: a name could be shown as another one."""


def full_name(namespace: str, name: str) -> str:
    """The name as the store keeps it: `namespace:name`, or just the name."""
    _check_text(name, "name")  # before it is looked up, which takes what can be hashed
    return _full_name(namespace, name)


@lru_cache(maxsize=4096)  # locks in a loop check the same name again and again
def _full_name(namespace: str, name: str) -> str:
    check_name(name)
    full = f"{namespace}:{name}" if namespace else name
    if len(full) > LONGEST_NAME:
        raise ConfigError(f"the name {full[:40]!r}… has {len(full)} characters; use at most {LONGEST_NAME}")
    return full


def check_name(name: str, field: str = "name") -> None:
    """Refuse names that two stores would not tell apart or that break the key layout."""
    _check_text(name, field)
    if not name or name != name.strip():
        raise ConfigError(f"{field}={name!r} is empty or begins or ends with a space; take the spaces away")
    if "{" in name or "}" in name:
        raise ConfigError(
            f"{field}={name!r} has a brace, which Redis Cluster reads as a slot tag; leave it out"
        )
    if has_control_characters(name):
        raise ConfigError(f"{field}={name!r} has a control character; use printable ones")
    if len(name) > LONGEST_NAME:
        raise ConfigError(
            f"the {field} {name[:40]!r}… has {len(name)} characters; use at most {LONGEST_NAME}"
        )


def has_control_characters(text: str) -> bool:
    """Whether it has signs that steer a terminal, or that turn the direction of what follows."""
    return any(
        unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(sign) in _TURNING
        for sign in text
    )


def _check_text(name: object, field: str) -> None:
    if not isinstance(name, str):
        raise ConfigError(f"{field}={name!r} is not a text; write a short one such as 'import-products'")


def check_namespace(namespace: str | None) -> str:
    """The namespace, checked; an empty one means none."""
    if namespace is None or namespace == "":
        return ""
    if not isinstance(namespace, str):
        raise ConfigError(f"namespace={namespace!r} is not a text; use a short one such as 'shop'")
    check_name(namespace, "namespace")
    if ":" in namespace:
        raise ConfigError(f"namespace={namespace!r} has a colon, which ends a namespace; use a dash")
    return namespace


def new_token() -> str:
    """A token for one race: 128 random bits, never used twice."""
    of, tokens = _stock
    try:
        return tokens.pop() if of == pid() else _draw()
    except IndexError:
        return _draw()


def _draw() -> str:
    """Fill the stock: asking the system for random bits anew for each token costs more than all the rest.

    A child draws a stock of its own, or its tokens would be those of its parent.
    """
    global _stock
    drawn = secrets.token_hex(16 * _DRAWN)
    first, *others = [drawn[i : i + 32] for i in range(0, len(drawn), 32)]
    _stock = (pid(), others)
    return first


_DRAWN = 64
_stock: tuple[int, list[str]] = (0, [])
_owner: tuple[int, str] = (0, "")


def owner() -> str:
    """Who we are, as host:pid:nonce; a restarted or forked one is somebody else."""
    global _owner
    here = world().here()
    if here:
        return here
    if _owner[0] != pid():
        _owner = (pid(), f"{socket.gethostname()[:100]}:{pid()}:{secrets.token_hex(4)}")
    return _owner[1]
