"""What callers learn of a failure of the mesh: a stable message and the id of the request (`protocol §13`, errors).

The texts of AWS errors name accounts, ARNs and keys. They stand in the log, under the id of the request.
"""

from collections.abc import Callable
from http import HTTPStatus

from asya.protocol.api_errors import ApiError


def with_request_id(message: str, request_id: str) -> str:
    """The message of a failure whose cause is in the log."""
    return f"{message}; look up request {request_id} in the log"


def public_error(error: ApiError, request_id: str, warn: Callable[[str], None]) -> ApiError:
    """Log the cause of a failure (5xx), and return the error for the caller; other errors stay as they are."""
    if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return error
    warn(f"request {request_id} got {error.status} {error.code}: {error.message}; cause: {error.__cause__!r}")
    message = with_request_id(error.message, request_id)
    return ApiError(error.status, error.code, message, error.field, retry_after=error.retry_after)
