"""How long a job run has been kept from its end, for the metric `RunDelay` (`protocol §15`)."""

from datetime import datetime, timedelta

from asya.protocol.times import parse_time

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
