"""Failures of runs for lack of capacity (`protocol §10`)."""

import pytest

from asya.heavy.capacity import failed_for_capacity, got_no_executor

NO_EXECUTOR = (
    "Job failed, please check complete logs in configured logging destination. ExitCode: 1. Last few exceptions: "
    "Abandoning job due to no executor being launched within 1200000ms after driver starts."
)


@pytest.mark.rule("10.busy.no-room")
@pytest.mark.parametrize(
    "details",
    [
        "ApplicationMaxCapacityExceededException: Worker could not be allocated as the application has exceeded "
        "maximumCapacity settings: [cpu: 4]",
        "Job failed. ServiceQuotaExceededException: The account's vCPU quota is used up",
        "The account has reached the service limit on the maximum vCPU it can use concurrently",
        "JobRun timed out in the queue",
        "Job run reached its queue timeout of 360 minutes",
        NO_EXECUTOR,
    ],
)
def test_10_a_lack_of_capacity_is_no_failure(details: str) -> None:
    assert failed_for_capacity("FAILED", details, has_driver_output=False)
    assert not failed_for_capacity("CANCELLED", details, has_driver_output=False)


@pytest.mark.rule("10.busy.no-room")
def test_10_a_driver_without_any_executor_lacked_capacity() -> None:
    assert failed_for_capacity("FAILED", NO_EXECUTOR, has_driver_output=True)
    further = (
        "ExitCode: 137. Last few exceptions: ApplicationMaxCapacityExceededException: Worker could not be allocated"
    )
    assert not failed_for_capacity("FAILED", further, has_driver_output=True)


def test_10_a_run_without_an_executor_was_billed_and_one_that_left_the_queue_was_not() -> None:
    assert got_no_executor(NO_EXECUTOR)
    assert not got_no_executor("Worker could not be allocated as the application has exceeded maximumCapacity settings")
    assert not got_no_executor(f"{NO_EXECUTOR} (left the queue unstarted after 360 minutes)")


@pytest.mark.parametrize("details", ["", "Job failed. ExitCode: 137", "Job execution timed out after 5 minutes"])
def test_10_other_failures_are_failures(details: str) -> None:
    assert not failed_for_capacity("FAILED", details, has_driver_output=False)
