"""Requests to look at a job run that works, to tell how far it is (`protocol §10`): a message that is sent on and on."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DETAIL_TYPE = "asya.watch-run"
# A job writes how far it is every three seconds, and what it wants known every second.
INTERVAL_SECONDS = 4


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """One look at a run.

    Attributes:
        run_id: the run's id, its name at EMR Serverless.
        turn: the how-manieth look, from 1.
        attempt: whose signs were seen last.
        beat: the number of the heartbeat that was told last.
        said: the name of the last file of messages that was passed on.
        told_to: where in the manifest the next turn begins to tell, if not all can be told at once.
    """

    run_id: str
    job_run_id: str
    turn: int = 1
    attempt: str = ""
    beat: int = 0
    said: str = ""
    told_to: int = 0


def send_watch(sqs: "SQSClient", queue_url: str, watch: WatchRequest) -> None:
    """Have a run looked at in a few seconds."""
    body = json.dumps({"detail-type": DETAIL_TYPE, "detail": asdict(watch)})
    sqs.send_message(QueueUrl=queue_url, MessageBody=body, DelaySeconds=INTERVAL_SECONDS)


def decode_watch(content: dict[str, Any]) -> WatchRequest | None:
    """Such a message; None if it is another kind of message.

    Raises:
        ValueError: if it is one and malformed.
    """
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    try:
        return WatchRequest(**detail)
    except TypeError as error:
        raise ValueError(f"no request to look at a run: {error}") from None
