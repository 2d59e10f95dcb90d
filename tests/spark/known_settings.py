"""Writes the settings that this Spark registers: `python -m tests.spark.known_settings`."""

from typing import Any

from pyspark.sql import SparkSession

from asya.testing.spark_session import spark_session
from asya_infra.mesh_file.spark_settings import SETTINGS

_CONFIG = "org.apache.spark.internal.config"
_OBJECTS = (
    *("org.apache.spark.sql.internal.SQLConf$", "org.apache.spark.sql.internal.StaticSQLConf$"),
    *("org.apache.spark.sql.hive.HiveUtils$", f"{_CONFIG}.package$"),
    *(
        f"{_CONFIG}.{name}$"
        for name in ("UI", "History", "Status", "Python", "Kryo", "Deploy", "Network", "Streaming", "Worker")
    ),
)
"""Those that declare settings. Each registers its own when it is loaded."""


def registered(spark: SparkSession) -> list[str]:
    """Return the keys of all settings, sorted."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _OBJECTS:
        loader.loadClass(name).getField("MODULE$").get(None)
    registry = loader.loadClass(f"{_CONFIG}.ConfigEntry$")
    field = registry.getDeclaredField("knownConfigs")
    field.setAccessible(True)
    return sorted(field.get(registry.getField("MODULE$").get(None)).keySet())


if __name__ == "__main__":
    SETTINGS.write_text("".join(f"{name}\n" for name in registered(spark_session())))
