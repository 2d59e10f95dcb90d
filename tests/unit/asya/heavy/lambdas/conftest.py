"""Fixtures of the heavy path's functions."""

from collections.abc import Iterator

import pytest

from tests.unit.memory_tables import memory_tables


@pytest.fixture(autouse=True)
def _tables() -> Iterator[None]:
    """Tables in memory: one run is hundreds of calls."""
    with memory_tables():
        yield
