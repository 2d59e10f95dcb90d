"""Selects the Python of job runs (`protocol §10`).

A release of EMR Serverless has several Pythons. The code of jobs and its packages are built for one of them, so a change
of the default must not change it. Other releases may lack it, and that of an existing application is unknown; their runs
use their default.
"""

import re

from asya.protocol.mesh_table import SparkJob

# The Python that the code of jobs is built for.
JOB_PYTHON = "3.12"
# The releases that have it, since emr-spark-8.1.0:
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.1.0.html
_RELEASES = re.compile(r"emr-spark-8\.[1-9]")
# Names the expected version to the job, which compares it at its start.
EXPECTED_VARIABLE = "ASYA_JOB_PYTHON"

_INTERPRETER = f"/usr/bin/python{JOB_PYTHON}"
_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# Spark prefers these to the variables. EMR Serverless starts the entry point by them.
_SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")
_DRIVER, _EXECUTOR = "spark.emr-serverless.driverEnv.", "spark.executorEnv."


def pins_python(release: str | None) -> bool:
    """Whether runs on a release use `JOB_PYTHON`, unless their actor selects another one.

    Args:
        release: the release of EMR Serverless; None if it is unknown.
    """
    return release is not None and _RELEASES.match(release) is not None


def python_conf(job: SparkJob, release: str | None) -> dict[str, str]:
    """The settings of Spark that select the Python.

    There are none if the actor selects one by its `env` or `conf`, or the release may lack it.

    Args:
        release: the release of EMR Serverless; None if it is unknown.
    """
    if not pins_python(release):
        return {}
    own = {*_SETTINGS, *(prefix + name for prefix in (_DRIVER, _EXECUTOR) for name in _VARIABLES)}
    if own & job.conf.keys() or job.env.keys() & set(_VARIABLES):
        return {}
    return {
        **{_DRIVER + name: _INTERPRETER for name in _VARIABLES},
        _EXECUTOR + _VARIABLES[0]: _INTERPRETER,
        **dict.fromkeys(_SETTINGS, _INTERPRETER),
        _DRIVER + EXPECTED_VARIABLE: JOB_PYTHON,
    }
