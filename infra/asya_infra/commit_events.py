"""The events of S3 that tell the completion about commits of resident runs, whose job runs go on."""

from collections.abc import Iterable
from typing import Any

from asya.protocol.job_runs import COMMIT_FILE, RUNS_PREFIX
from asya_infra.limits.aws_limits import EVENT_PATTERN
from asya_infra.limits.rendering import policy_length


def commit_pattern(bucket: str, actors: Iterable[str]) -> dict[str, Any]:
    """Return the event pattern for the commits of these actors; for those of all actors if the pattern would be too long.

    The completion drops the commits of runs that are not resident.

    Args:
        bucket: the name of the mesh's bucket.
        actors: the heavy actors whose runs linger.
    """
    of_actors = _pattern(bucket, [f"{RUNS_PREFIX}{actor}/*/{COMMIT_FILE}" for actor in actors])
    fits = policy_length(of_actors) <= EVENT_PATTERN.usable
    return of_actors if fits else _pattern(bucket, [f"{RUNS_PREFIX}*/{COMMIT_FILE}"])


def _pattern(bucket: str, keys: Iterable[str]) -> dict[str, Any]:
    return {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [bucket]}, "object": {"key": [{"wildcard": key} for key in keys]}},
    }
