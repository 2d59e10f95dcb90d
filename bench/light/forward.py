"""A bare function: each batch of a queue onto the next, as quick as can be. What the mesh is measured against."""

import os
from typing import Any

import boto3

sqs = boto3.client("sqs")
following = os.environ["FOLLOWING_QUEUE"]


def handle(event: dict[str, Any], _context: object) -> None:
    """Lambda's entry point."""
    entries = [{"Id": str(number), "MessageBody": record["body"]} for number, record in enumerate(event["Records"])]
    if sqs.send_message_batch(QueueUrl=following, Entries=entries).get("Failed"):
        raise RuntimeError("some were not taken")
