"""Errors in the format of Agent2Agent (`protocol §13`, `/a2a`)."""

from asya.capabilities.a2a.requests import TASK_NOT_FOUND, UNSUPPORTED_OPERATION, A2AError
from asya.capabilities.pauses.resume_input import InvalidInputError
from asya.gateway.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, Failure, Fault, MessageId
from asya.protocol.api_errors import ApiError
from asya.tasks.starts.tools import InvalidArgumentsError

_CODES = {
    "not_found": TASK_NOT_FOUND,
    "not_paused": UNSUPPORTED_OPERATION,
    "not_resumable": UNSUPPORTED_OPERATION,
    "idempotency_in_progress": INTERNAL_ERROR,
}
REASONS = {
    INVALID_PARAMS: "INVALID_PARAMS",
    INTERNAL_ERROR: "INTERNAL_ERROR",
    -32601: "METHOD_NOT_FOUND",
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32009: "VERSION_NOT_SUPPORTED",
}
_GOOGLE = "type.googleapis.com/google.rpc."


def to_a2a_error(error: ApiError) -> A2AError:
    """Convert an API error to a JSON-RPC error.

    Raises:
        ApiError: The same error if its status is 403, which HTTP reports.
    """
    if error.status == 403:
        raise error
    is_temporary = error.status == 429 or error.status >= 500
    code = _CODES.get(error.code, INTERNAL_ERROR if is_temporary else INVALID_PARAMS)
    match error:
        case InvalidInputError():
            fields = error.fields
        case InvalidArgumentsError():
            fields = {f"arguments.{place}" if place else "arguments": problem for place, problem in error.problems}
        case _:
            fields = {}
    # Neither JSON-RPC nor Agent2Agent has a code for too many calls.
    reason = error.code.upper() if error.status == 429 else None
    return A2AError(code, error.message, error.field, fields=fields, reason=reason, retry_after=error.retry_after)


def failure(message_id: MessageId, error: A2AError) -> Failure:
    """Return the response to a failed call, with the detail types of Google's APIs."""
    fields = error.fields or ({error.field: error.message} if error.field else {})
    reason = error.reason or REASONS[error.code]
    info = {
        "@type": f"{_GOOGLE}ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": {"field": error.field} if error.field else {},
    }
    violations = [{"field": name, "description": problem} for name, problem in fields.items()]
    data: list[object] = [info]
    if violations:
        data.append({"@type": f"{_GOOGLE}BadRequest", "fieldViolations": violations})
    if error.retry_after is not None:
        data.append({"@type": f"{_GOOGLE}RetryInfo", "retryDelay": f"{error.retry_after}s"})
    return Failure(id=message_id, error=Fault(code=error.code, message=error.message, data=data))
