"""What comes to the completion: events of job runs, requests to look at one, tasks that were canceled (`protocol §10`)."""

import json
from dataclasses import dataclass

from asya.spark.aws.cancel_requests import decode_cancel
from asya.spark.aws.run_events import JobRunEvent, decode_event
from asya.spark.aws.watch_requests import WatchRequest, decode_watch


@dataclass(frozen=True, slots=True)
class CanceledTask:
    """A task, or the root of a tree, was canceled."""

    task_id: str


def decode_message(body: bytes) -> JobRunEvent | WatchRequest | CanceledTask | None:
    """Read a message of the completion's queue; None if it is about something else.

    Raises:
        ValueError: if it is no message at all.
    """
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("a message is a JSON object")
    task_id = decode_cancel(content)
    if task_id is not None:
        return CanceledTask(task_id)
    return decode_watch(content) or decode_event(body)
