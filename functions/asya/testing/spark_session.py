"""The Spark session of the tests of one process: it starts once, in some seconds, and stays warm.

Each job run has its own settings nevertheless.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    # As a run with `parallel` has it. A single call at a time notices nothing.
    "spark.scheduler.mode": "FAIR",
}
_HADOOP = "spark.hadoop."


@cache
def spark_session() -> "SparkSession":
    """The session, which lives until this process ends. A session that the process already has is used.

    Raises:
        asya_local.errors.LocalCloudError: no Java that Spark supports is on this machine; the message says how to install one.
    """
    import pyspark
    from pyspark import SparkConf, SparkContext
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
    settings = {
        **_SETTINGS,
        "spark.driver.extraJavaOptions": driver_options(BUILD, java_home, Path(pyspark.__file__).resolve().parent),
        **private_settings(Path(folder)),
    }
    conf = SparkConf().setMaster("local[2]").setAppName("asya.testing").setAll(list(settings.items()))
    with variables(isolation.variables(REGION)):  # the JVM keeps the variables that it starts with
        SparkContext.getOrCreate(conf)
        # Options of the builder would be those of each session, and win over the settings of a run.
        session = SparkSession.builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def share_path(session: "SparkSession") -> None:
    """Let Spark's Python workers import what this process can, such as the modules of a mesh, with its variables of AWS."""
    own = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    session.sparkContext.environment.update(own, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))


@contextmanager
def run_settings(session: "SparkSession", submit_parameters: str) -> "Iterator[None]":
    """Give a run the settings of its actor: the sessions that it opens have them, as they have those of a new context.

    A setting that Spark reads only when its context starts has no effect, and a warning names it.

    Args:
        session: the session of this process.
        submit_parameters: the `sparkSubmitParameters` of the run.
    """
    from asya_local.emr.local_spark import local_conf
    from asya_local.emr.submit_parameters import parse

    context: Any = session.sparkContext._jsc
    java: Any = session._jsparkSession
    shared = java.sharedState()
    settings = {
        name: value
        for name, value in local_conf(parse(submit_parameters).conf).items()
        if not name.startswith("spark.executorEnv.")  # `share_path` sets the variables of workers
    }
    hadoop = {name.removeprefix(_HADOOP): value for name, value in settings.items() if name.startswith(_HADOOP)}
    for name, value in settings.items():
        if context.sc().conf().get(name, None) != value and _is_read_at_start(session, name):
            _warn(name)
    # New sessions copy what the sessions share, and code of jobs looks at the context.
    with (
        _changed(context.sc().conf(), settings, remove="remove"),
        _changed(shared.conf(), settings, remove="remove"),
        _changed(context.hadoopConfiguration(), hadoop, remove="unset"),
        _changed(shared.hadoopConf(), hadoop, remove="unset"),
    ):
        yield


@contextmanager
def _changed(conf: Any, settings: Mapping[str, str], remove: str) -> "Iterator[None]":
    """Change a configuration of the JVM within the block.

    Args:
        remove: its method that removes a setting.
    """
    before = {name: conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            conf.set(name, value) if value is not None else getattr(conf, remove)(name)


def _is_read_at_start(session: "SparkSession", name: str) -> bool:
    """Whether a setting is one of Spark that its sessions cannot change."""
    jvm: Any = session._jvm
    entry = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(name)
    return entry is not None and not session.conf.isModifiable(name)


@cache
def _warn(name: str) -> None:
    warnings.warn(
        f"Spark reads {name} when its context starts, and the test kit has one context for all tests, so the setting has no "
        "effect here. `asya run`, `asya dev` and the local cloud heed it",
        stacklevel=2,
    )
