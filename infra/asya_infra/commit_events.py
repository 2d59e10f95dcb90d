"""The events of S3 that tell the completion about commits of resident runs, whose job runs go on."""

from collections.abc import Iterable
from typing import Any

from asya.protocol.job_runs import COMMIT_FILE, RUNS_PREFIX


def commit_pattern(bucket: str, actors: Iterable[str]) -> dict[str, Any]:
    """Return the event pattern for the commits of these actors.

    Args:
        bucket: the name of the mesh's bucket.
        actors: the heavy actors whose runs linger.
    """
    keys = [{"wildcard": f"{RUNS_PREFIX}{actor}/*/{COMMIT_FILE}"} for actor in actors]
    return {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [bucket]}, "object": {"key": keys}},
    }
