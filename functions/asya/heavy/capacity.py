"""What happens without capacity for a job run, and how long runs are delayed (`protocol §10`, `§15`).

A run without capacity is one of four cases:

- StartJobRun refuses the run (`refused_for_capacity`): `asya.heavy.lambdas.dispatch` starts it again later.
- EMR Serverless accepts the run and gives it up (`failed_for_capacity`): `asya.heavy.lambdas.result_routing` makes its members
  pending again. A driver that waited for its first executor was billed, so only so many runs may end that way.
- The previous run of the actor still waits: the dispatcher forms no further one that is not full.
- The application belongs to others, and all permits of the mesh are taken: `asya.heavy.aws.start_limits`.

How many runs fit is computed at synthesis (`asya_infra.mesh_file.spark_capacity`).
"""

from datetime import datetime, timedelta

from asya.protocol.times import parse_time

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


# EMR Serverless gives up a run whose driver has had no executor for 20 minutes. Events may be late.
EXECUTOR_WAIT = timedelta(minutes=30)


def run_delay(
    waiting_since: str, running_at: str | None, max_run: timedelta, now: datetime, *, has_executor: bool = True
) -> timedelta:
    """Return how long a run has waited for its workers, or by how much it has exceeded its time limit; at least 0.

    Args:
        waiting_since: when the run was formed, or an earlier one of its envelopes that got no capacity (RFC 3339).
        running_at: RFC 3339; None before the run has started.
        max_run: the longest time of a run.
        has_executor: whether the running run has had an executor.
    """
    if running_at is None or not has_executor:
        return max(timedelta(), now - parse_time(waiting_since))
    return max(timedelta(), now - parse_time(running_at) - max_run)
