"""Conditions that did not hold: not errors, but answers."""

from botocore.exceptions import ClientError

_FAILED = "ConditionalCheckFailed"


def is_condition_failure(error: ClientError) -> bool:
    """Whether DynamoDB refused a write because its condition did not hold."""
    return error.response["Error"]["Code"] == f"{_FAILED}Exception"


def failed_conditions(error: ClientError) -> set[int]:
    """The places in a transaction whose conditions did not hold; empty if it failed for another reason."""
    reasons = error.response.get("CancellationReasons", [])
    return {place for place, reason in enumerate(reasons) if reason.get("Code") == _FAILED}


def is_precondition_failure(error: ClientError) -> bool:
    """Whether S3 refused to write an object because it is there."""
    return error.response["Error"]["Code"] in ("PreconditionFailed", "412")


def is_missing(error: ClientError) -> bool:
    """Whether S3 has no such object."""
    return error.response["Error"]["Code"] in ("NoSuchKey", "404", "NotFound")
