"""Writes an S3 object unless it exists; classifies the errors of conditional writes to S3."""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PAUSES = (0.05, 0.1, 0.2)  # seconds, before the second and later tries


def _pause(seconds: float) -> None:
    """Sleep for about so many seconds, with jitter, so conflicting writers do not retry in lockstep."""
    time.sleep(seconds * random.uniform(0.5, 1.0))


def put_if_absent(
    s3: "S3Client", *, bucket: str, key: str, body: bytes, pause: Callable[[float], None] = _pause
) -> bool:
    """Write a JSON object unless its key exists: the first writer wins.

    S3 answers 409 while another write or a deletion of this key is at work: then nobody has lost yet. The SDK does not
    retry 409, so this function does, for less than half a second.

    Args:
        pause: sleeps for about so many seconds.

    Returns:
        False if the object exists. After a lost answer that may be this caller's own write.

    Raises:
        ClientError, BotoCoreError: the object cannot be written, also if the conflict lasts; retry later.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json", IfNoneMatch="*")
        except ClientError as error:
            if is_precondition_failure(error):
                return False
            seconds = next(pauses, None) if is_write_conflict(error) else None
            if seconds is None:
                raise
            pause(seconds)
        else:
            return True


def is_precondition_failure(error: ClientError) -> bool:
    """Whether S3 refused a write because the object exists."""
    return error.response["Error"]["Code"] in ("PreconditionFailed", "412")


def is_write_conflict(error: ClientError) -> bool:
    """Whether S3 refused a conditional write because another write of the object was at work: write again."""
    return error.response["Error"]["Code"] in ("ConditionalRequestConflict", "409")
