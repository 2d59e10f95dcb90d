"""The messages of the completion's queue: run events, commits, watch requests, cancellations (`protocol §10`).

S3 sends notifications of commits by EventBridge. The watch and the reconciler send those that got lost.

The dispatcher leaves canceled envelopes out of a run, and the completion drops their results. A run whose members are all
canceled would still cost money, so the completion searches the open runs and cancels it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

RUN_STATE_CHANGE = "EMR Serverless Job Run State Change"
OWN_SOURCE = "asya.job-runs"


@dataclass(frozen=True, slots=True)
class JobRunEvent:
    """A state change of a job run.

    Attributes:
        name: the run's name; for runs of a mesh, the run id.
        details: the reason, if known; events of EMR Serverless carry no reason. It counts only for a run that EMR Serverless
            rejected or no longer knows.
        is_own: whether the message claims to be the mesh's own, sent in place of one that EventBridge lost or never sends.
    """

    application_id: str
    job_run_id: str
    name: str
    state: str
    details: str = ""
    is_own: bool = field(default=False, compare=False)


def decode_event(body: bytes) -> JobRunEvent | None:
    """Decodes a message of the completion's queue; None for another kind of message.

    Raises:
        ValueError: if the body is no JSON object.
    """
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("the event must be a JSON object")
    detail = content.get("detail")
    if content.get("detail-type") != RUN_STATE_CHANGE or not isinstance(detail, dict):
        return None
    return JobRunEvent(
        application_id=_text(detail, "applicationId"),
        job_run_id=_text(detail, "jobRunId"),
        name=_text(detail, "jobRunName"),
        state=_text(detail, "state"),
        details=_text(detail, "stateDetails"),
        is_own=content.get("source") == OWN_SOURCE,
    )


def encode_event(event: JobRunEvent) -> str:
    """The message of an event that EventBridge lost or never sends, in the form of the EventBridge rule."""
    detail = {
        "applicationId": event.application_id,
        "jobRunId": event.job_run_id,
        "jobRunName": event.name,
        "state": event.state,
        "stateDetails": event.details,
    }
    return json.dumps({"source": OWN_SOURCE, "detail-type": RUN_STATE_CHANGE, "detail": detail})


def _text(detail: Mapping[str, Any], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""


OBJECT_CREATED = "Object Created"


def encode_commit(bucket: str, key: str) -> str:
    """The message of a commit that S3 has sent no notification of."""
    detail = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps({"source": OWN_SOURCE, "detail-type": OBJECT_CREATED, "detail": detail})


def decode_commit(content: dict[str, Any]) -> str | None:
    """The key of a new object; None for another kind of message."""
    detail = content.get("detail")
    if content.get("detail-type") != OBJECT_CREATED or not isinstance(detail, dict):
        return None
    written = detail.get("object")
    key = written.get("key") if isinstance(written, dict) else None
    return key if isinstance(key, str) else None


TASK_CANCELED = "asya.task-canceled"


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
    return json.dumps({"detail-type": TASK_CANCELED, "detail": {"taskId": task_id}})


def decode_cancel(content: dict[str, Any]) -> str | None:
    """The id of the canceled task; None for another kind of message."""
    detail = content.get("detail")
    if content.get("detail-type") != TASK_CANCELED or not isinstance(detail, dict):
        return None
    task_id = detail.get("taskId")
    return task_id if isinstance(task_id, str) else None


WATCH_RUN = "asya.watch-run"
# A job writes a heartbeat every 3 s and its partials every second.
INTERVAL_SECONDS = 4


class WatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to poll a run once.

    Attributes:
        run_id: the run's id, also its name at EMR Serverless.
        turn: number of this poll, from 1.
        attempt: the attempt polled last.
        beat: number of the last reported heartbeat.
        partials_file: name of the last reported file of partials.
        next_member: index of the first member that the next turn reports, if a run has too many members for one turn.
    """

    run_id: str
    job_run_id: str
    turn: int = 1
    attempt: str = ""
    beat: int = 0
    partials_file: str = ""
    next_member: int = 0


def send_watch(sqs: "SQSClient", queue_url: str, watch: WatchRequest) -> None:
    """Requests a poll in `INTERVAL_SECONDS`."""
    body = json.dumps({"detail-type": WATCH_RUN, "detail": msgspec.to_builtins(watch)})
    sqs.send_message(QueueUrl=queue_url, MessageBody=body, DelaySeconds=INTERVAL_SECONDS)


def decode_watch(content: dict[str, Any]) -> WatchRequest | None:
    """Decodes a watch request; None for another kind of message.

    Raises:
        ValueError: if the request is malformed.
    """
    detail = content.get("detail")
    if content.get("detail-type") != WATCH_RUN or not isinstance(detail, dict):
        return None
    try:
        return msgspec.convert(detail, WatchRequest)
    except msgspec.ValidationError as error:
        raise ValueError(f"malformed watch request: {error}") from None


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
