"""Fixtures for the examples of the design documents."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asya.protocol.mesh_table import Sink
from tests.doubles.mesh_world import MeshWorld, mesh_world
from tests.doubles.pipeline import Handler, Pipeline

MakePipeline = Callable[..., Pipeline]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """Queues, buckets and a gateway."""
    with mesh_world(monkeypatch) as made:
        yield made


@pytest.fixture
def pipeline(world: MeshWorld) -> MakePipeline:
    """Makes a pipeline of these handlers; `spec` holds keys of every actor, `sink` those of the mesh."""

    def make(sink: Sink | None = None, spec: dict[str, Any] | None = None, **handlers: Handler) -> Pipeline:
        named = {name.replace("_", "-"): handler for name, handler in handlers.items()}
        return Pipeline(world, named, spec or {}, sink or Sink())

    return make
