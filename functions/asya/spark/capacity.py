"""Runs that ended because EMR Serverless had no room for them: that is waiting, and nobody's fault (`protocol §10`)."""

# What the service says of runs that it gave up before, or while, it found workers for them.
_SIGNS = (
    "ApplicationMaxCapacityExceededException",
    "exceeded maximumCapacity",
    "ServiceQuotaExceededException",
    "InsufficientCapacity",
    "timed out in the queue",
    "queue timeout",
)


def failed_for_capacity(state: str, details: str) -> bool:
    """Whether a run ended for want of workers, and may simply be started again.

    Args:
        state: in which it ended.
        details: the service's own words.
    """
    said = details.casefold()
    return state == "FAILED" and any(sign.casefold() in said for sign in _SIGNS)
