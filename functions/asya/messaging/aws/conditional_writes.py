"""Classifies the errors of conditional writes and of missing objects."""

from botocore.exceptions import ClientError

_FAILED = "ConditionalCheckFailed"


def is_condition_failure(error: ClientError) -> bool:
    """Whether DynamoDB refused a write because its condition failed."""
    return error.response["Error"]["Code"] == f"{_FAILED}Exception"


def failed_conditions(error: ClientError) -> set[int]:
    """The indexes of the failed conditions in a transaction; empty if it failed for another reason."""
    reasons = error.response.get("CancellationReasons", [])
    return {index for index, reason in enumerate(reasons) if reason.get("Code") == _FAILED}


def is_precondition_failure(error: ClientError) -> bool:
    """Whether S3 refused a write because the object exists."""
    return error.response["Error"]["Code"] in ("PreconditionFailed", "412")


def is_missing(error: ClientError) -> bool:
    """Whether S3 has no such object."""
    return error.response["Error"]["Code"] in ("NoSuchKey", "404", "NotFound")
