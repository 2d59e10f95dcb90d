"""Explains the exit codes of job runs: EMR Serverless gives numbers, and an author needs the key to change."""

import re

from asya.protocol.mesh_table import SparkJob

_KILLED = re.compile(r"exit(?:ed with)? ?code:? ?137\b|OutOfMemoryError", re.IGNORECASE)
_MARK = "out of memory"


def explained(details: str, actor: str, job: SparkJob | None) -> str:
    """Return the details of a failed job run, with what 137 means and which keys of the mesh file raise the memory.

    Args:
        details: the `stateDetails` of EMR Serverless.
        actor: the heavy actor.
        job: its job; None if the mesh does not have the actor any more.
    """
    if job is None or _MARK in details or not _KILLED.search(details):
        return details
    meaning = f"137 is {_MARK} as a rule" if "137" in details else _MARK
    sizes = f"the driver had {_size(job.driver.memory_mb)}, each executor {_size(job.executor.memory_mb)}"
    keys = f"raise `spark.driver.memory` of {actor} in the mesh file, or `spark.executors.memory` if an executor died"
    return f"{details.rstrip('. ')} ({meaning}: {sizes}; {keys})"


def _size(megabytes: int) -> str:
    return f"{megabytes // 1024} GB" if megabytes % 1024 == 0 else f"{megabytes} MB"
