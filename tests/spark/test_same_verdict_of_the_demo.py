"""The tests of `tests/cloud/test_demo.py` on the test kit, as they are."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.cloud import test_demo
from tests.cloud.heavy_bursts import FULL
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.paths import PROJECT
from tests.simulation.same_verdict.comparable import comparable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not FULL, reason="takes half a minute (make test-full); test_job_runs_of_the_kit.py has the tool"
    ),
]

globals().update(comparable(test_demo))


@pytest.fixture(scope="module")
def cloud(spark: SparkSession) -> Iterator[KitCloud]:
    """The example mesh."""
    with kit_cloud(PROJECT / "mesh.yaml") as running:
        yield running
