"""Fixtures for the tests of entry points."""

from collections.abc import Iterator

import pytest

from tests.doubles.fan_in_sets import dynamodb as dynamodb  # noqa: PLC0414
from tests.doubles.fan_in_sets import start as start  # noqa: PLC0414
from tests.doubles.mesh_world import MeshWorld, mesh_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """Queues, buckets, tables and a gateway around one function."""
    with mesh_world(monkeypatch) as made:
        yield made
