"""Makes the Python environment of job runs: the standard library and PySpark, and nothing of this project.

A job thus finds the same packages as on EMR Serverless: those of its `requirements.txt`, which its run unpacks.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path

from asya_local.environments import linked_environment

_PACKAGES = ("pyspark", "py4j")


def job_python(root: Path) -> Path:
    """Return the interpreter of the environment for this machine's Python and PySpark; make it once.

    Args:
        root: The folder for builds.
    """
    base = Path(getattr(sys, "_base_executable", sys.executable))
    packages = [_folder(name) for name in _PACKAGES]
    return linked_environment(root, "job-environment", base, platform.python_version(), packages)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]).resolve()


# PySpark brings Spark with it. The JVM gets this path, not the link, so that all environments share its class archive.
# Importing PySpark to find it would take a third of a second.
SPARK_HOME = _folder("pyspark")
