"""Requests to stop the job runs of tasks that were canceled (`protocol §13`, DELETE).

A canceled envelope that still waits is left out when a run is formed, and one whose run goes on is dropped when that ends.
What is left is a run that works for nobody any more: the completion, which knows the runs, is asked to look for such.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DETAIL_TYPE = "asya.task-canceled"


class CancelRequests:
    """Requests on the completion's queue. Only a mesh with a heavy actor has one."""

    def __init__(self, sqs: "SQSClient", *, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def send(self, task_id: str, *, delay: int = 0) -> None:
        """Ask that runs which work for canceled tasks only are canceled; asking again does no harm.

        To be called once the task's record says that it is canceled: the completion asks for the states itself.

        Args:
            task_id: of the task, or of the root of the tree that was canceled.
            delay: seconds until it is looked at, 900 at most.
        """
        self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=encode_cancel(task_id), DelaySeconds=delay)


def encode_cancel(task_id: str) -> str:
    """The message."""
    return json.dumps({"detail-type": DETAIL_TYPE, "detail": {"taskId": task_id}})


def decode_cancel(content: dict[str, Any]) -> str | None:
    """The id of the task that such a message is about; None if it is another kind of message."""
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    task_id = detail.get("taskId")
    return task_id if isinstance(task_id, str) else None
