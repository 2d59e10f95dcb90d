"""A bare function that forwards each batch to the next queue: the base of the comparison."""

import os
from typing import Any

import boto3

sqs = boto3.client("sqs")
following = os.environ["FOLLOWING_QUEUE"]


def handle(event: dict[str, Any], _context: object) -> None:
    """Forward one SQS event."""
    entries = [{"Id": str(number), "MessageBody": record["body"]} for number, record in enumerate(event["Records"])]
    if sqs.send_message_batch(QueueUrl=following, Entries=entries).get("Failed"):
        raise RuntimeError(f"{following} did not accept all messages of a batch")
