"""protocol §11: a fan-in actor of a mesh whose results lie in an S3 of its own."""

from datetime import timedelta

import msgspec
import pytest

from asya.function.aws import clients
from asya.protocol.mesh_table import FanIn, Sink
from asya.testing.services.direct import MemoryS3
from tests.doubles.fan_in_sets import Start, child, hold_back, numbers

ADDRESS = "https://s3.storage.example"


@pytest.mark.rule("11.sink.endpoint")
def test_what_came_too_late_is_kept_where_the_results_are(start: Start) -> None:
    own = MemoryS3()
    mesh = start(FanIn(timeout=60.0))
    mesh.table = msgspec.structs.replace(mesh.table, sink=Sink(endpoint=ADDRESS))
    mesh.world.monkeypatch.setattr(
        clients, "results_s3", lambda endpoint: {ADDRESS: own}.get(endpoint, mesh.world.s3), raising=False
    )
    held = hold_back(mesh, child(2))
    large = {"text": "x" * 9000}
    mesh.start({"items": [large, *numbers(1)["items"]]})
    mesh.run(until=timedelta(minutes=2))
    mesh.queued += held
    mesh.run()
    assert len(own.keys(f"results/superseded/{child(2)}/")) == 1
    assert own.keys("results/failed/env-1.json") != []
    # Slices, frames and payloads stay in the bucket of the mesh.
    assert own.keys() == own.keys("results/")
    assert mesh.world.s3.keys("results/") == []
    assert mesh.world.s3.keys("slices/") != []
