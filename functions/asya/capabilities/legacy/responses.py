"""The responses of legacy runtimes, which a handler may return or yield (`protocol §14`, `responses`)."""

from typing import Any

from asya.capabilities.legacy.options import Responses
from asya.protocol.errors import ErrorInfo
from asya.runtime.call import HandlerFailed


def read_response(form: Responses, value: Any) -> Any:
    """Return the payload in a value from a handler.

    Args:
        form: which responses count; with `plain` each value is a payload.

    Raises:
        HandlerFailed: the value is an error response.
    """
    if form == "plain" or not isinstance(value, dict):
        return value
    if value.keys() == {"error", "message"} and all(isinstance(text, str) for text in value.values()):
        raise HandlerFailed(ErrorInfo(type=value["error"], message=value["message"]))
    if form == "wrapped" and value.keys() == {"status", "result"} and value["status"] == "ok":
        return value["result"]
    return value
