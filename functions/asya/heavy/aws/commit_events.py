"""Notifications of commits, by which the completion learns of results while the job run goes on (`protocol §10.resident`).

S3 sends them by EventBridge. The watch and the reconciler send those that got lost.
"""

import json
from typing import Any

from asya.heavy.aws.run_events import OWN_SOURCE

DETAIL_TYPE = "Object Created"
SOURCE = "aws.s3"


def encode_commit(bucket: str, key: str) -> str:
    """The message of a commit that S3 has sent no notification of."""
    detail = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps({"source": OWN_SOURCE, "detail-type": DETAIL_TYPE, "detail": detail})


def decode_commit(content: dict[str, Any]) -> str | None:
    """The key of a new object; None for another kind of message."""
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    written = detail.get("object")
    key = written.get("key") if isinstance(written, dict) else None
    return key if isinstance(key, str) else None
