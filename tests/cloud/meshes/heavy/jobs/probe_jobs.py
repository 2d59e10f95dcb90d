"""A job that tells what Spark it has got (`tests/doubles/one_answer.py`)."""

import importlib.util
import os
import platform
from pathlib import Path

from pyspark.errors import PySparkException

BESIDE = Path(__file__).with_name("beside.txt")
QUERIES = (
    "CAST('abc' AS INT)",
    "2147483647 + 1",
    "1 / 0",
    "CAST(300 AS TINYINT)",
    "array(1)[5]",
    "to_date('2026-02-30')",
    "CAST(99999999999999999999999999999999999999 AS DECIMAL(38,0)) + 1",
    "CAST(1 AS DECIMAL(38,18)) / CAST(3 AS DECIMAL(38,18))",
    "CAST(1.10 AS DECIMAL(10,2)) * CAST(3 AS DECIMAL(10,0))",
    "CAST('NaN' AS DOUBLE)",
    "CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)",
    "CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)",
    "0.1D + 0.2D",
    "CAST(CAST(0 AS TIMESTAMP) AS STRING)",
    "version()",
)


def tell(spark, payload):
    return {
        "settings": settings(spark),
        "hadoop": spark.sparkContext._jsc.hadoopConfiguration().get("probe.key"),
        "jar": loaded(spark, "own.Hello"),
        "data": spark.read.text(os.environ["ASYA_DATA_URI"] + "probe/line.txt").first()[0],
        "values": {query: value(spark, query) for query in QUERIES},
        "driver": here(),
        "workers": spark.sparkContext.parallelize([0], 1).map(lambda _: here()).first(),
    }


def settings(spark):
    """All settings that have an effect, but for those of SQL with the value that this Spark begins with."""
    entries = spark._jvm.org.apache.spark.sql.internal.SQLConf().getAllDefinedConfs()
    initial = {entry._1(): entry._2() for entry in map(entries.apply, range(entries.size()))}
    effective = {row["key"]: row["value"] for row in spark.sql("SET -v").collect()} | dict(spark.conf.getAll)
    changed = {name: text for name, text in effective.items() if initial.get(name) != text}
    return changed | dict(spark.sparkContext.getConf().getAll())


def loaded(spark, name):
    """The class of a jar, as the driver finds it."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(name).getName()


def value(spark, query):
    try:
        return repr(spark.sql(f"SELECT {query}").first()[0])
    except PySparkException as error:
        return f"{type(error).__name__} {error.getCondition()}"


def here():
    """What a process has: that of the driver, or one of Spark's Python workers."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "package": importlib.util.find_spec("msgspec") is not None,
        "file": BESIDE.read_text(),
        "variable": os.environ.get("PROBE_UNIT"),
    }
