"""Answers CloudFormation about a custom resource; without an answer it waits for its time limit."""

import msgspec
import urllib3

from asya.senders.roles import ListRequest

_RETRIES = urllib3.Retry(total=3, backoff_factor=0.5, status_forcelist=(500, 502, 503, 504), raise_on_status=False)
"""Lambda does not call the function again (`protocol §4.roles.order`)."""
_TIMEOUT = 4.0  # seconds for a try
_REASON_LIMIT = 1024  # characters; the whole answer may have 4,096 bytes


def send_answer(request: ListRequest, physical_id: str, problem: str | None) -> None:
    """Tell CloudFormation how a request ended.

    Args:
        request: the request.
        physical_id: the same for each request, so that no update looks like a replacement.
        problem: why the request failed; None after a success.

    Raises:
        urllib3.exceptions.HTTPError: CloudFormation did not take the answer; the deployment fails after its time limit.
    """
    answer = {
        "Status": "SUCCESS" if problem is None else "FAILED",
        "Reason": (problem or "")[:_REASON_LIMIT],
        "PhysicalResourceId": physical_id,
        "StackId": request.stack_id,
        "RequestId": request.request_id,
        "LogicalResourceId": request.logical_id,
    }
    # The URL is signed for an empty media type.
    response = urllib3.request(
        "PUT",
        request.response_url,
        body=msgspec.json.encode(answer),
        headers={"content-type": ""},
        timeout=_TIMEOUT,
        retries=_RETRIES,
    )
    if response.status >= 300:
        raise urllib3.exceptions.HTTPError(f"CloudFormation answered {response.status} to {request.logical_id}")
