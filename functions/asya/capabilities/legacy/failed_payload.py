"""The payload of a failure in the legacy form `failed_payload: wrapped` (`protocol §14`)."""

from msgspec import Raw

from asya.protocol.errors import ErrorInfo
from asya.protocol.strict_json import encode_value

_TIMEOUT_ERROR = "Runtime timeout exceeded"


def wrapped_payload(reason: str, error: ErrorInfo, payload: Raw) -> Raw:
    """The error together with the payload as it was received.

    Args:
        reason: the reason of the failure; a timeout has a fixed error text in the legacy form.
        error: the error of the failure.
        payload: the payload that the failing actor received.
    """
    about = {
        "error": _TIMEOUT_ERROR if reason == "Timeout" else error.message,
        "details": {"message": error.message, "type": error.type, "traceback": error.traceback},
    }
    return Raw(bytes(encode_value(about))[:-1] + b',"original_payload":' + bytes(payload) + b"}")
