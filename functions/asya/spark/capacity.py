"""Detects runs that EMR Serverless gave up for lack of capacity; they charge no envelope (`protocol §10`)."""

# Texts in `stateDetails` of runs that EMR Serverless gave up before they had their workers.
_CAPACITY_ERRORS = (
    "ApplicationMaxCapacityExceededException",
    "exceeded maximumCapacity",
    "ServiceQuotaExceededException",
    "service limit on the maximum vCPU it can use concurrently",
    "InsufficientCapacity",
    "timed out in the queue",
    "queue timeout",
)
# Said by the mesh itself, of a run that ended in the queue.
LEFT_QUEUE = "left the queue unstarted"
# The driver ran, and waited 20 minutes for its first executor.
_WITHOUT_EXECUTOR = ("no executor being launched",)


def failed_for_capacity(state: str, details: str, *, has_driver_output: bool) -> bool:
    """Whether a run ended for lack of workers, so that it may start again unchanged.

    Args:
        state: the final state.
        details: the `stateDetails` of EMR Serverless.
        has_driver_output: whether the driver wrote anything. Such a run may name a lack of further executors, and have
            failed for another reason.
    """
    text = details.casefold()
    if LEFT_QUEUE in text:
        return True
    errors = _WITHOUT_EXECUTOR if has_driver_output else (*_CAPACITY_ERRORS, *_WITHOUT_EXECUTOR)
    return state == "FAILED" and any(error.casefold() in text for error in errors)
