"""The Spark session of the tests of one process: it starts once, in some seconds, and stays warm.

Each job run has its own settings nevertheless.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya.testing import isolation
from asya.testing.services.functions import REGION
from asya.testing.user_code import variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOP = "spark.hadoop."
_EXECUTOR = "spark.executorEnv."
_ACCEPTS = "py4j.GatewayServer"


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
    from asya_local.emr.local_spark import OF_THE_KIT
    from asya_local.tools import find_java

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    java_home = os.environ.setdefault("JAVA_HOME", find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tempfile.mkdtemp(prefix="asya-testing-spark-")
    settings = {
        **{name: each.value for name, each in OF_THE_KIT.items() if each.value is not None},
        "spark.ui.showConsoleProgress": "false",
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
def run_settings(
    session: "SparkSession", submit_parameters: str, find: Callable[[str], str | None] = lambda _address: None
) -> "Iterator[None]":
    """Give a run the settings of its actor: the sessions that it opens have them, as they have those of a new context.

    A setting that Spark reads only when its context starts has no effect, and a warning names it. Spark's Python workers have
    the variables of the run. Its jars stay for later runs, because a JVM forgets no class.

    Args:
        session: the session of this process.
        submit_parameters: the `sparkSubmitParameters` of the run.
        find: returns the path of a file on S3; None without one.
    """
    from asya_local.emr.local_spark import launch_of, local_conf
    from asya_local.emr.submit_parameters import parse
    from asya_local.tools import machine_memory_mb

    context: Any = session.sparkContext._jsc
    java: Any = session._jsparkSession
    shared = java.sharedState()
    parameters = parse(submit_parameters)
    settings, launch = local_conf(parameters.conf), launch_of(parameters.conf, machine_memory_mb())
    hadoop = {name.removeprefix(_HADOOP): value for name, value in settings.items() if name.startswith(_HADOOP)}
    workers = {name.removeprefix(_EXECUTOR) for name in settings if name.startswith(_EXECUTOR)}
    for name, value in settings.items():
        if context.sc().conf().get(name, None) != value and _is_read_at_start(session, name):
            _warn(name)
    for name in [*(["spark.driver.extraJavaOptions"] if launch.java_options else []), *dict(launch.conf)]:
        _warn(name)
    for jar in _paths(parameters.files("spark.jars"), find):
        _add_jar(session, jar)
    for file in _paths(parameters.files("spark.files"), find):
        session.sparkContext.addFile(file)
    # New sessions copy what the sessions share, and code of jobs looks at the context.
    with (
        mock.patch.dict(
            session.sparkContext.environment, {name: os.environ[name] for name in workers & os.environ.keys()}
        ),
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
def _add_jar(session: "SparkSession", path: str) -> None:
    """Let the tasks and the driver of later calls find the classes of a jar."""
    java: Any = session._jsparkSession
    java.sessionState().resourceLoader().addJar(Path(path).as_uri())
    # Each thread of Python has one of the JVM, which takes the class loader of the thread that accepts it.
    loader = java.sharedState().jarClassLoader()
    for thread in session._jvm.java.lang.Thread.getAllStackTraces().keySet():  # type: ignore[union-attr]
        if any(frame.getClassName() == _ACCEPTS for frame in thread.getStackTrace()):
            thread.setContextClassLoader(loader)


def _paths(addresses: list[str], find: Callable[[str], str | None]) -> "Iterator[str]":
    """Yield the paths of the files that this machine has; a warning names the others."""
    from asya_local.emr.local_spark import files_here, local_path

    here, lacking = files_here(addresses, find)
    for address in lacking:
        _warn_of_file(address)
    for address in here:
        if (path := local_path(address)) is None:
            _warn_of_file(address)
        else:
            yield path


@cache
def _warn_of_file(address: str) -> None:
    warnings.warn(
        f"Jobs of the test kit run without {address}, which is no file of this machine. Put files of the mesh's data below the "
        "data folder: `Mesh(data=…)`",
        stacklevel=2,
    )


@cache
def _warn(name: str) -> None:
    warnings.warn(
        f"Spark reads {name} when its context starts, and the test kit has one context for all tests, so the setting has no "
        "effect here. `asya run`, `asya dev` and the local cloud heed it",
        stacklevel=2,
    )
