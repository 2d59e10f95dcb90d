"""What happens when EMR Serverless has no capacity for a job run: it waits, and charges no envelope (`protocol §10`).

There are four cases:

- StartJobRun refuses the run (`refused_for_capacity`): `asya.heavy.lambdas.dispatch` starts it again later.
- EMR Serverless accepts the run and gives it up (`failed_for_capacity`): `asya.heavy.lambdas.resolution` makes its members
  pending again. A driver that waited for its first executor was billed, so only so many runs may end that way.
- The previous run of the actor still waits: the dispatcher forms no further one that is not full.
- The application belongs to others, and all slots of the mesh are taken: `asya.heavy.aws.run_slots`.

How many runs fit is computed at synthesis (`asya_infra.mesh_file.spark`).
"""

# The delay of the next dispatch request. A run that starts or ends before sends one earlier.
RETRY_SECONDS = 15.0
# The delay while another run of the mesh waits or has the capacity.
POLL_SECONDS = 10.0

# Error codes of StartJobRun.
_REFUSALS = frozenset({"ServiceQuotaExceededException", "ApplicationMaxCapacityExceededException"})

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


def refused_for_capacity(code: str) -> bool:
    """Whether an error code of StartJobRun means that another run has to end first."""
    return code in _REFUSALS


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


def got_no_executor(details: str) -> bool:
    """Whether a run that failed for capacity had its driver, which is billed.

    Args:
        details: the `stateDetails` of EMR Serverless.
    """
    text = details.casefold()
    return LEFT_QUEUE not in text and any(error in text for error in _WITHOUT_EXECUTOR)
