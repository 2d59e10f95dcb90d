"""Failures of runs for lack of capacity (`protocol §10`)."""

import pytest

from asya.spark.capacity import failed_for_capacity


@pytest.mark.rule("10.busy.no-room")
@pytest.mark.parametrize(
    "details",
    [
        "ApplicationMaxCapacityExceededException: Worker could not be allocated as the application has exceeded "
        "maximumCapacity settings: [cpu: 4]",
        "Job failed. ServiceQuotaExceededException: The account's vCPU quota is used up",
        "JobRun timed out in the queue",
        "Job run reached its queue timeout of 360 minutes",
    ],
)
def test_10_a_lack_of_capacity_is_no_failure(details: str) -> None:
    assert failed_for_capacity("FAILED", details)
    assert not failed_for_capacity("CANCELLED", details)


@pytest.mark.parametrize("details", ["", "Job failed. ExitCode: 137", "Job execution timed out after 5 minutes"])
def test_10_other_failures_are_failures(details: str) -> None:
    assert not failed_for_capacity("FAILED", details)
