"""The tests of `tests/cloud/test_results_index.py` on the test kit, as they are."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.cloud import test_results_index
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.paths import PROJECT
from tests.simulation.same_verdict.comparable import comparable

pytestmark = pytest.mark.spark

globals().update(comparable(test_results_index))


@pytest.fixture(scope="module")
def cloud(spark: SparkSession) -> Iterator[KitCloud]:
    """The example mesh."""
    with kit_cloud(PROJECT / "mesh.yaml") as running:
        yield running
