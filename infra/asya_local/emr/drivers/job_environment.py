"""Makes the Python environment of job runs: the standard library and PySpark, and nothing of this project.

A job thus finds the same packages as on EMR Serverless: those of its `requirements.txt`, which its run unpacks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from asya.heavy.job_python import JOB_PYTHON
from asya_infra.product.environments import spark_packages
from asya_infra.product.interpreters import interpreter_for
from asya_local.tools import linked_environment


def job_python(root: Path) -> Path:
    """Return the interpreter of the environment with PySpark and the Python of job runs; make it once.

    Args:
        root: The folder for builds.
    """
    python = interpreter_for(JOB_PYTHON)
    return linked_environment(root, "job-environment", python.path, python.version, spark_packages())


@cache
def spark_home() -> Path:
    """Return the folder of Spark, which PySpark brings with it.

    The JVM gets this path, not the link of an environment, so that all environments share its class archive.
    """
    return spark_packages()[0]
