"""The tests of `tests/cloud/test_paths.py` on the test kit, as they are."""

from asya.testing import Mesh
from tests.cloud import test_paths as on_the_cloud
from tests.cloud.conftest import MESHES
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


def test_retries_wait_in_virtual_time_as_their_policies_say() -> None:
    kit = Mesh(MESHES / "paths" / "mesh.yaml")
    for how, delays in on_the_cloud.BACKOFFS.items():
        before = kit.now
        assert kit.send("stubborn", {"fails": how}).status == "failed"
        assert sum(delays) <= (kit.now - before).total_seconds() <= sum(delays) + 3
