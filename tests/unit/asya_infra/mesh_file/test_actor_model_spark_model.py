"""The types of the keys of a job: the messages of other values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import heavy_actor_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "spark", "more", "problem"),
    [
        ("", "jop: x", "", "4: actors.a.spark.jop: unknown key; did you mean 'job'?"),
        ("", "catalog: hive", "", "4: actors.a.spark.catalog: should be 'none' or 'glue'; got 'hive'"),
        ("", "", "spark: {tables: delta}", "5: spark.tables: should be 'parquet' or 'iceberg'; got 'delta'"),
        ("", "driver: {cores: 3}", "", "4: actors.a.spark.driver.cores: should be 1, 2, 4, 8 or 16; got 3"),
    ],
)
def test_values(keys: str, spark: str, more: str, problem: str) -> None:
    assert heavy_actor_problems(keys, spark, more) == [problem]
