"""Tells whether SQS refused a call because there is no such queue."""

from botocore.exceptions import ClientError

# The first is that of the query protocol, which error codes of SQS still have behind a prefix.
_CODES = ("NonExistentQueue", "QueueDoesNotExist")


def is_missing_queue(error: ClientError) -> bool:
    """Whether the queue of a call does not exist."""
    return error.response["Error"]["Code"].endswith(_CODES)
