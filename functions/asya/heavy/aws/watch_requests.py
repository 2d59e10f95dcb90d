"""Watch requests: delayed messages by which the completion polls a running job run (`protocol §10`)."""

import json
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DETAIL_TYPE = "asya.watch-run"
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
    body = json.dumps({"detail-type": DETAIL_TYPE, "detail": msgspec.to_builtins(watch)})
    sqs.send_message(QueueUrl=queue_url, MessageBody=body, DelaySeconds=INTERVAL_SECONDS)


def decode_watch(content: dict[str, Any]) -> WatchRequest | None:
    """Decodes a watch request; None for another kind of message.

    Raises:
        ValueError: if the request is malformed.
    """
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    try:
        return msgspec.convert(detail, WatchRequest)
    except msgspec.ValidationError as error:
        raise ValueError(f"malformed watch request: {error}") from None
