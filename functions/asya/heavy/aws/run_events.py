"""Job run events: from EventBridge, or from the mesh itself if EventBridge sends no event (`protocol §10`)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DETAIL_TYPE = "EMR Serverless Job Run State Change"
SOURCE = "aws.emr-serverless"
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
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
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
    return json.dumps({"source": OWN_SOURCE, "detail-type": DETAIL_TYPE, "detail": detail})


def _text(detail: Mapping[str, Any], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""
