"""Fixtures of the functions of dead letters."""

import pytest

from tests.doubles.dead_letters import MESH, DlqWorld
from tests.doubles.mesh_world import MeshWorld


@pytest.fixture
def dlq_world(world: MeshWorld) -> DlqWorld:
    """The function of dead letters, with empty queues."""
    return DlqWorld(world, world.services("x-dlq", MESH))
