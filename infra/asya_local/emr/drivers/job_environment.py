"""Makes the Python environment of job runs: the standard library and PySpark, and nothing of this project.

A job thus finds the same packages as on EMR Serverless: those of its `requirements.txt`, which its run unpacks.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from pathlib import Path

from asya_infra.product.environments import spark_packages
from asya_local.environments import linked_environment


def job_python(root: Path) -> Path:
    """Return the interpreter of the environment for this machine's Python and PySpark; make it once.

    Args:
        root: The folder for builds.
    """
    base = Path(getattr(sys, "_base_executable", sys.executable))
    return linked_environment(root, "job-environment", base, platform.python_version(), spark_packages())


@cache
def spark_home() -> Path:
    """Return the folder of Spark, which PySpark brings with it.

    The JVM gets this path, not the link of an environment, so that all environments share its class archive.
    """
    return spark_packages()[0]
