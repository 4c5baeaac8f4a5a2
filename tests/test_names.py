"""Names, namespaces and who we are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickoff import Tickoff
from tickoff.errors import ConfigError
from tickoff.names import full_name, new_token, owner


@pytest.mark.parametrize(
    "bad", ["", " x", "x ", "a{b", "a}b", "a\nb", "a\0b", "\ud800", "x" * 201, "\x7f", 5, None, b"x"]
)
def test_a_name_that_two_stores_could_mix_up_is_refused(bad: Any) -> None:
    """Braces, control characters, outer spaces, over-long or empty names."""
    with pytest.raises(ConfigError):
        full_name("", bad)


@pytest.mark.parametrize("name", ["import-products", "größe", "名前", "a b", "x'; DROP TABLE t", "%s", "a:b"])
def test_ordinary_and_strange_names_are_accepted(name: str) -> None:
    """They are quoted where it matters, not forbidden."""
    assert full_name("shop", name) == f"shop:{name}"


@pytest.mark.parametrize("bad", ["a:b", "{", " ", "a\n"])
def test_a_bad_namespace_is_refused_at_once(bad: str) -> None:
    """A colon ends a namespace, so it cannot be part of one."""
    with pytest.raises(ConfigError, match="namespace"):
        Tickoff("memory://", namespace=bad)


def test_a_namespace_that_is_no_text_is_refused() -> None:
    """It is told so, not met with an error from inside."""
    with pytest.raises(ConfigError, match="namespace=5 is not a text"):
        Tickoff("memory://", namespace=5)  # type: ignore[arg-type]


@given(
    st.tuples(st.text(max_size=5), st.text(max_size=8)), st.tuples(st.text(max_size=5), st.text(max_size=8))
)
def test_two_names_never_share_a_key(one: tuple[str, str], two: tuple[str, str]) -> None:
    """Within namespaces, different names are different for every store."""
    try:
        keys = [Tickoff("memory://", namespace=space).lock(name)._name for space, name in (one, two)]
    except ConfigError:
        return
    if one[0] and two[0]:
        assert (keys[0] == keys[1]) == (one == two)


def test_tokens_are_never_used_twice() -> None:
    """128 random bits each."""
    assert len({new_token() for _ in range(1000)}) == 1000


def test_the_owner_names_host_and_process() -> None:
    """host:pid:nonce, the same for the life of the process."""
    assert owner() == owner()
    assert owner().count(":") == 2
