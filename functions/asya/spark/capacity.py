"""Detects runs that EMR Serverless gave up for lack of capacity; they charge no envelope (`protocol §10`)."""

# Texts in `stateDetails` of runs that EMR Serverless gave up before they had their workers.
_CAPACITY_ERRORS = (
    "ApplicationMaxCapacityExceededException",
    "exceeded maximumCapacity",
    "ServiceQuotaExceededException",
    "InsufficientCapacity",
    "timed out in the queue",
    "queue timeout",
)


def failed_for_capacity(state: str, details: str) -> bool:
    """Whether a run failed for lack of workers, so that it may start again unchanged.

    Args:
        state: the final state.
        details: the `stateDetails` of EMR Serverless.
    """
    text = details.casefold()
    return state == "FAILED" and any(error.casefold() in text for error in _CAPACITY_ERRORS)
