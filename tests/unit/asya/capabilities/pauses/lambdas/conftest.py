"""Fixtures of the functions of pauses."""

import pytest

from asya.function.aws import clients
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.pausing import FakeEvents


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch, world: MeshWorld) -> FakeEvents:
    """EventBridge's bus of the world."""
    found = FakeEvents()
    monkeypatch.setattr(clients, "events", lambda: found)
    return found
