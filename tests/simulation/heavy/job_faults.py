"""Draws limits and faults of EMR Serverless from the seed."""

from random import Random

from asya.testing.services.faults import FaultProfile
from asya.testing.services.job_service import JobFaults


def random_job_faults(random: Random, profile: FaultProfile) -> JobFaults:
    """Draw limits and faults of job runs; no faults if `profile` has none."""
    limits = JobFaults(
        starts_per_second=random.choice((0.2, 1.0, 1000.0)),
        burst=random.choice((1, 3, 1000)),
        capacity=random.choice((None, None, 1, 2)),
        when_full=random.choice(("refused", "queued")),
        longest_start=random.choice((1.0, 20.0, 90.0)),
    )
    if profile.is_fault_free:
        return limits
    rate = random.choice((0.0, 0.1, 0.3))
    return JobFaults(
        starts_per_second=limits.starts_per_second,
        burst=limits.burst,
        capacity=limits.capacity,
        when_full=limits.when_full,
        longest_start=limits.longest_start,
        lost_events=rate,
        repeated_events=rate,
        late_events=rate,
        early_events=rate,
        killed_drivers=rate / 2,
        canceled_runs=rate / 3,
        orphaned_drivers=rate / 3,
        second_drivers=rate / 3,
        forgets_tokens_after=random.choice((5400.0, 86400.0)),
    )
