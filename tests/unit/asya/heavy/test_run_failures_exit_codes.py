"""What the exit codes of job runs mean."""

import pytest

from asya.heavy.run_failures import explained
from asya.protocol.mesh_table import SparkJob, WorkerSize

JOB = SparkJob(job="jobs.risk", driver=WorkerSize(memory_mb=1024), executor=WorkerSize(memory_mb=2500))
TEXT = (
    "Job failed, please check complete logs. ExitCode: 137 (137 is out of memory as a rule: the driver had 1 GB, each executor "
    "2500 MB; raise `spark.driver.memory` of risk in the mesh file, or `spark.executors.memory` if an executor died)"
)


@pytest.mark.rule("10.died.memory")
def test_137_is_out_of_memory_and_names_the_keys_to_raise() -> None:
    once = explained("Job failed, please check complete logs. ExitCode: 137.", "risk", JOB)
    assert once == TEXT
    assert explained(once, "risk", JOB) == once


@pytest.mark.parametrize("details", ["ExitCode: 1.", "", "ExitCode: 1370.", "took 137 s"])
def test_other_ends_stay_as_they_are(details: str) -> None:
    assert explained(details, "risk", JOB) == details


def test_an_executor_and_the_heap_of_java_run_out_of_memory_too() -> None:
    assert "raise `spark" in explained("Command exited with code 137", "risk", JOB)
    assert "(out of memory: the driver had 1 GB" in explained(
        "java.lang.OutOfMemoryError: Java heap space", "risk", JOB
    )


def test_without_the_actor_nothing_is_known() -> None:
    assert explained("ExitCode: 137.", "risk", None) == "ExitCode: 137."
