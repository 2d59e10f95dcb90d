"""Requests to cancel the job runs of canceled tasks (`protocol §13`, DELETE).

The dispatcher leaves canceled envelopes out of a run, and the completion drops their results. A run whose members are all
canceled would still cost money, so the completion searches the open runs and cancels it.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DETAIL_TYPE = "asya.task-canceled"


class CancelRequests:
    """Sends requests to the completion's queue, which only a mesh with a heavy actor has."""

    def __init__(self, sqs: "SQSClient", *, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def send(self, task_id: str, *, delay: int = 0) -> None:
        """Requests the cancellation of runs whose tasks are all canceled; idempotent.

        Call it after the task's record is canceled, because the completion reads the states of the tasks itself.

        Args:
            task_id: the id of the canceled task, or of the root of the canceled tree.
            delay: seconds until the completion receives the request, 900 at most.
        """
        self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=encode_cancel(task_id), DelaySeconds=delay)


def encode_cancel(task_id: str) -> str:
    """The message of a request."""
    return json.dumps({"detail-type": DETAIL_TYPE, "detail": {"taskId": task_id}})


def decode_cancel(content: dict[str, Any]) -> str | None:
    """The id of the canceled task; None for another kind of message."""
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    task_id = detail.get("taskId")
    return task_id if isinstance(task_id, str) else None
