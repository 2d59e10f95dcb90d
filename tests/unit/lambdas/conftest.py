"""What the tests of entry points share."""

from collections.abc import Iterator

import pytest

from tests.doubles.mesh_world import MeshWorld, mesh_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """Queues, buckets, tables and a gateway around one function."""
    with mesh_world(monkeypatch) as made:
        yield made
