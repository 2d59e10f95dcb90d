"""Selects the Python of job runs, and the folders that it imports packages from (`protocol §10`).

A release of EMR Serverless has several Pythons. The code of jobs and its packages are built for one of them, so a change
of the default must not change it. Other releases may lack it, and that of an existing application is unknown; their runs
use their default.
"""

import re
from collections.abc import Mapping, Sequence

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
# The folders beside a run that Spark unpacks the user's jobs and the packages of `requirements.txt` into, and a folder in
# the latter with the boto3 of drivers that read secrets, or that linger.
CODE_FOLDER = "asya-jobs"
PACKAGES_FOLDER = "asya-packages"
AWS_CLIENT = ".aws-client"
_PATH = "PYTHONPATH"
_OWN_JOBS = "asya_spark."
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


def is_users(job: SparkJob) -> bool:
    """Whether a job is one of the user's: those of the job library need no code and no packages of the mesh."""
    return not job.job.startswith(_OWN_JOBS)


def path_conf(conf: Mapping[str, str], folders: Sequence[str], *, aws_client: bool) -> dict[str, str]:
    """The settings with these folders in front of the PYTHONPATH of the driver and the executors.

    Python searches them after the zips of `--py-files` and PySpark, and before the packages of the image.

    Args:
        conf: the settings of Spark.
        folders: folders beside the run.
        aws_client: whether the driver itself calls AWS, which takes boto3. A boto3 among the packages wins.
    """
    paths = [f"./{folder}" for folder in folders]
    driver = [*paths, *([f"./{PACKAGES_FOLDER}/{AWS_CLIENT}"] if aws_client else [])]
    added = {_DRIVER + _PATH: driver, _EXECUTOR + _PATH: paths}
    return {
        **conf,
        **{key: ":".join([*own, *filter(None, [conf.get(key)])]) for key, own in added.items() if own},
    }
