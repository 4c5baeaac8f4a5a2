"""What follows the `?` of a database URL: options of the driver, refused early where unknown to it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from ...errors import ConfigError


def connect_args(url: sa.URL, limit: float) -> dict[str, Any]:
    """What every connection gets beside the URL: time-outs, which an URL may shorten, not lengthen."""
    match url.get_backend_name():
        case "postgresql":
            return {
                "connect_timeout": max(2, math.ceil(_at_most(url, "connect_timeout", limit))),
                "tcp_user_timeout": max(1, int(_at_most(url, "tcp_user_timeout", limit * 1000))),
                "fallback_application_name": "tickoff",
            }
        case "mysql" | "mariadb":
            return {
                name: _at_most(url, name, limit)
                for name in ("connect_timeout", "read_timeout", "write_timeout")
            }
        case _:
            _refuse(url, url.query.keys() - {"timeout"})
            return {"timeout": _at_most(url, "timeout", limit)}


def refuse_unknown(engine: sa.Engine) -> None:
    """Refuse options that the engine's driver, which is installed, does not know."""
    match engine.url.get_backend_name():
        case "postgresql":
            _check_postgresql(engine.url)
        case "mysql" | "mariadb":
            _check_mysql(engine)


def _check_postgresql(url: sa.URL) -> None:
    import psycopg

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    _refuse(url, url.query.keys() - known)


def _check_mysql(engine: sa.Engine) -> None:
    from pymysql import Connection
    from pymysql.charset import charset_by_name

    _, options = engine.dialect.create_connect_args(engine.url)
    _refuse(engine.url, options.keys() - inspect.signature(Connection).parameters.keys())
    charset = options.get("charset")
    if charset is not None and charset_by_name(charset) is None:
        raise ConfigError(f"charset={charset!r} in the URL is unknown to MySQL; leave it out, or use utf8mb4")


def _refuse(url: sa.URL, unknown: Iterable[str]) -> None:
    listed = ", ".join(sorted(unknown))
    if listed:
        raise ConfigError(
            f"the URL has an unknown option ({listed}), which the driver for {url.get_backend_name()} "
            "does not take; correct it or leave it out"
        )


def _at_most(url: sa.URL, name: str, limit: float) -> float:
    """The time-out of the URL as far as it is below ours; nought means none."""
    given = url.query.get(name)
    if given is None:
        return limit
    try:
        wanted = float(str(given))
    except ValueError as error:
        raise ConfigError(
            f"{name}={given!r} in the URL is not a number; give a time-out in digits"
        ) from error
    return min(wanted, limit) if wanted > 0 else limit
