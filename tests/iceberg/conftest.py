"""A Spark session with Iceberg, and a table that stages writes, for each test a new one.

`make iceberg` runs these tests, in an environment of their own: no package index has Iceberg's jar for the Spark of the other
tests. The catalog is a folder of this machine.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from asya_local.tools import find_java

_JARS = "snowpark_connect_deps_iceberg"
_numbers = count(1)

# Without the jar there is nothing to test, as in the other environments.
collect_ignore_glob = [] if importlib.util.find_spec(_JARS) else ["test_*.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]` with the catalog `iceberg`, as `tables: iceberg` names it."""
    import snowpark_connect_deps_iceberg as package

    (jar,) = package.get_jars_dir().glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    os.environ["JAVA_HOME"] = find_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.jars": str(jar),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": f"file://{folder}/iceberg",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = SparkSession.builder.master("local[2]").appName("tests").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def table(spark: SparkSession) -> str:
    """The name of an empty table that stages writes."""
    name = f"iceberg.sales.orders{next(_numbers)}"
    spark.sql(f"CREATE TABLE {name} (id STRING, n INT, attempt INT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    return name
