"""The messages of the completion's queue: job run events, commits, watch requests, canceled tasks (`protocol §10`)."""

import json
from dataclasses import dataclass

from asya.heavy.aws.cancel_requests import decode_cancel
from asya.heavy.aws.commit_events import decode_commit
from asya.heavy.aws.run_events import JobRunEvent, decode_event
from asya.heavy.aws.watch_requests import WatchRequest, decode_watch


@dataclass(frozen=True, slots=True)
class CanceledTask:
    """A canceled task, or the canceled root of a tree."""

    task_id: str


@dataclass(frozen=True, slots=True)
class WrittenCommit:
    """An attempt has written its commit, at this key."""

    key: str


def decode_message(body: bytes) -> JobRunEvent | WatchRequest | CanceledTask | WrittenCommit | None:
    """Decodes a message of the completion's queue; None for an unknown kind.

    Raises:
        ValueError: if the body is no JSON object, or a malformed watch request.
    """
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("the message must be a JSON object")
    task_id = decode_cancel(content)
    if task_id is not None:
        return CanceledTask(task_id)
    key = decode_commit(content)
    if key is not None:
        return WrittenCommit(key)
    return decode_watch(content) or decode_event(body)
