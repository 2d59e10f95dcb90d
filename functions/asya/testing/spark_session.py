"""The Spark session of the tests of one process: it starts once, in some seconds, and stays warm."""

import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from asya.testing import isolation
from asya.testing.services.functions import REGION
from asya.testing.user_code import variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    # Tests have next to no data: further tasks, and plans made anew in between, cost more than they save.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


@cache
def spark_session() -> "SparkSession":
    """The session, which lives until this process ends. A session that the process already has is used.

    Raises:
        asya_local.errors.LocalCloudError: no Java that Spark supports is on this machine; the message says how to install one.
    """
    import pyspark
    from pyspark.sql import SparkSession

    from asya_infra.product.places import BUILD
    from asya_local.emr.drivers.class_archive import driver_options
    from asya_local.emr.drivers.private_settings import private_settings
    from asya_local.tools import find_java

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    java_home = os.environ.setdefault("JAVA_HOME", find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tempfile.mkdtemp(prefix="asya-testing-spark-")
    settings: dict[str, bool | float | int | str | None] = {
        **_SETTINGS,
        "spark.driver.extraJavaOptions": driver_options(BUILD, java_home, Path(pyspark.__file__).resolve().parent),
        **private_settings(Path(folder)),
    }
    builder = SparkSession.builder.master("local[2]").appName("asya.testing").config(map=settings)
    with variables(isolation.variables(REGION)):  # the JVM keeps the variables that it starts with
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def share_path(session: "SparkSession") -> None:
    """Let Spark's Python workers import what this process can, such as the modules of a mesh, with its variables of AWS."""
    own = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    session.sparkContext.environment.update(own, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
