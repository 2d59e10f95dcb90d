"""The settings that `asya validate` knows are those of the Spark that runs jobs."""

import pytest

from asya_infra.mesh_file.spark_settings import known_settings
from tests.spark.known_settings import registered

pytestmark = pytest.mark.spark


def test_the_known_settings_are_those_of_this_spark(spark):
    """Spark registers some more as it works."""
    assert set(known_settings()) <= set(registered(spark)), "`python -m tests.spark.known_settings` writes them"
