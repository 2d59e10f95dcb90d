"""How long a job run has been kept from its end, for the metric `RunDelay` (`protocol §15`)."""

from datetime import datetime, timedelta

from asya.protocol.times import parse_time


def run_delay(waiting_since: str, running_at: str | None, max_run: timedelta, now: datetime) -> timedelta:
    """Return how long a run has waited for its start, or by how much it has exceeded its time limit; at least 0.

    Args:
        waiting_since: when the run was formed, or an earlier one of its envelopes that got no capacity (RFC 3339).
        running_at: RFC 3339; None before the run has started.
        max_run: the longest time of a run.
    """
    delay = now - parse_time(waiting_since) if running_at is None else now - parse_time(running_at) - max_run
    return max(timedelta(), delay)
