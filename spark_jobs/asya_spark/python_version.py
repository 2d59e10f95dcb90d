"""Compares the running Python with the one that the code was built for."""

import platform
import sys

# Set by the dispatcher with the Python of the run; not set by an actor with a Python of its own, nor on the local cloud.
EXPECTED_VARIABLE = "ASYA_JOB_PYTHON"


class WrongPythonError(RuntimeError):
    """EMR Serverless runs the job on another Python than its code was built for."""


def running_version() -> str:
    """The version of the running Python, such as `3.12.11`."""
    return platform.python_version()


def check_version(expected: str | None, version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Compares the running version with the expected one, such as `3.12`; None expects nothing.

    Raises:
        WrongPythonError: if they differ.
    """
    running = ".".join(map(str, version))
    if expected is not None and running != expected:
        raise WrongPythonError(
            f"the job runs on Python {running} ({sys.executable}), but its code was built for Python {expected}; "
            f"use a release of EMR Serverless with Python {expected}, or set spark.pyspark.python in the actor's conf to "
            "the path of such a Python"
        )
