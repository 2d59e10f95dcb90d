"""What happened to a job run, as EventBridge tells it, and as we tell ourselves where it does not (`protocol §10`)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DETAIL_TYPE = "EMR Serverless Job Run State Change"
SOURCE = "aws.emr-serverless"
OWN_SOURCE = "asya.job-runs"


@dataclass(frozen=True, slots=True)
class JobRunEvent:
    """A job run came into a state.

    Attributes:
        name: the run's name: for runs of a mesh, its run id.
        details: why, where known; events of EMR Serverless do not say.
    """

    application_id: str
    job_run_id: str
    name: str
    state: str
    details: str = ""


def decode_event(body: bytes) -> JobRunEvent | None:
    """Read a message of the completion queue; None if it is about something else.

    Raises:
        ValueError: if it is no event at all.
    """
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("an event is a JSON object")
    detail = content.get("detail")
    if content.get("detail-type") != DETAIL_TYPE or not isinstance(detail, dict):
        return None
    return JobRunEvent(
        application_id=_text(detail, "applicationId"),
        job_run_id=_text(detail, "jobRunId"),
        name=_text(detail, "jobRunName"),
        state=_text(detail, "state"),
        details=_text(detail, "stateDetails"),
    )


def encode_event(event: JobRunEvent) -> str:
    """The message that the rule would have made of such an event; where the event was lost, or never was."""
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
