"""A stage for programs, and the two services of other people that they ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.examples.providers import Lookup, Supplier, served
from tests.examples.running import Stage, stage_in


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Programs started here share a namespace that nobody else uses."""
    with stage_in(tmp_path) as made:
        made.environment["TICKOFF_NAMESPACE"] = f"t{uuid4().hex[:8]}"
        yield made


@pytest.fixture
def supplier() -> Iterator[Supplier]:
    """A supplier's API."""
    with served(Supplier()) as running:
        yield running


@pytest.fixture
def lookup() -> Iterator[Lookup]:
    """A provider's API, flaky and paid by the call."""
    with served(Lookup()) as running:
        yield running
