"""The tests of `tests/cloud/test_heavy_*.py` on the test kit, as they are."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.cloud import test_heavy_crashes, test_heavy_scale
from tests.cloud.conftest import MESHES
from tests.cloud.heavy_bursts import FULL, all_bursts
from tests.doubles.kit_heavy import KitHeavy, kit_heavy
from tests.simulation.same_verdict.comparable import comparable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not FULL, reason="takes minutes (make test-full); test_job_runs_of_the_kit.py has single runs"),
]

globals().update(comparable(test_heavy_scale))
globals().update(comparable(test_heavy_crashes))


@pytest.fixture(scope="module")
def heavy(spark: SparkSession) -> Iterator[KitHeavy]:
    """The heavy mesh, after the same bursts."""
    with kit_heavy(MESHES / "heavy" / "mesh.yaml") as mesh:
        for route, payloads in all_bursts().items():
            mesh.send_all(payloads, *route)
        yield mesh
        assert mesh.dead_letters() == {}
