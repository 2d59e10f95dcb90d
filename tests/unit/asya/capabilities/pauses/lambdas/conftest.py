"""Fixtures of the functions of pauses and waits."""

from collections.abc import Iterator

import pytest

from asya.function.aws import clients
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.pausing import FakeEvents
from tests.doubles.waiting import WaitingWorld, waiting_world


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch, world: MeshWorld) -> FakeEvents:
    """EventBridge's bus of the world."""
    found = FakeEvents()
    monkeypatch.setattr(clients, "events", lambda: found)
    return found


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingWorld]:
    """A mesh with wait actors."""
    with waiting_world(monkeypatch) as world:
        yield world
