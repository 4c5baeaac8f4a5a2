"""Redis URLs taken apart, and refused where a password would be taken for something else.

A `/`, `?` or `#` in a password ends the host as far as an URL is concerned; what follows would be shown as a
port, a path or an option. So such an URL is refused without a word of it.
"""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlsplit

from ...errors import ConfigError

_UNREADABLE = (
    "the Redis URL cannot be read; write it as redis://user:password@host:6379/0, and in user and password "
    "write %2F for /, %3F for ?, %23 for # and %40 for @"
)


def parts_of(url: str) -> SplitResult:
    """The parts of an URL; refused unless each is what it seems to be."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        parts, options = None, []
    if parts is None or parts.fragment or "@" in parts.path or not all(name for name, _ in options):
        raise ConfigError(_UNREADABLE)
    return parts


def check_server(parts: SplitResult) -> None:
    """Refuse an URL of one server whose port or database is no number."""
    try:
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        port_is_right = False
    database = parts.path.strip("/")
    if not port_is_right or not (database == "" or (database.isascii() and database.isdecimal())):
        raise ConfigError(_UNREADABLE)
