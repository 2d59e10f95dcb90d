"""One Spark session for all tests in this folder, and a data folder for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from asya.testing.spark_session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of the test kit: `local[2]`, on the Java that `scripts/find-java` finds."""
    session = spark_session()
    yield session
    session.stop()


@pytest.fixture
def data_folder(asya_data: Path) -> Path:
    """An empty data prefix on disk, named by ASYA_DATA_URI."""
    return asya_data
