"""The error that refuses a gateway request, all its codes, and the typed JSON body of a call (`protocol §13`)."""

from typing import Literal, TypeVar, get_args

import msgspec

ErrorCode = Literal[
    "canceled",
    "deadline_passed",
    "dismissed",
    "fan_in",
    "forbidden",
    "forbidden_origin",
    "idempotency_in_progress",
    "idempotency_mismatch",
    "internal",
    "input_mismatch",
    "invalid_arguments",
    "invalid_batch",
    "invalid_body",
    "invalid_cursor",
    "invalid_event",
    "invalid_field",
    "invalid_input",
    "invalid_json",
    "invalid_report",
    "maybe_sent",
    "method_not_allowed",
    "missing_actor",
    "missing_parameter",
    "not_a_set",
    "not_acceptable",
    "not_cancelable",
    "not_dismissed",
    "not_failed",
    "not_found",
    "not_paused",
    "not_resumable",
    "not_sent",
    "not_startable",
    "nothing_to_replay",
    "overtaken",
    "paused",
    "redriven",
    "refused",
    "replayed",
    "replayed_by_another",
    "route_ended",
    "route_not_allowed",
    "running",
    "set_closed",
    "set_expired",
    "slice",
    "succeeded",
    "too_large",
    "too_many_generations",
    "too_many_replays",
    "too_many_long_polls",
    "unauthorized",
    "unavailable",
    "unknown_actor",
    "unknown_field",
    "unknown_tool",
    "unknown_trigger",
    "unreadable",
]
ERROR_CODES: frozenset[str] = frozenset(get_args(ErrorCode))


class ApiError(Exception):
    """Refuses a request.

    Attributes:
        status: the HTTP status of the answer.
        code: the stable name of the error, for programs.
        message: a sentence for the caller.
        field: the field, header or parameter at fault; None if the whole request is.
        retry_after: seconds after which the same request may succeed; None if a retry does not help.
    """

    def __init__(
        self, status: int, code: ErrorCode, message: str, field: str | None = None, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.retry_after = retry_after


T = TypeVar("T", bound=msgspec.Struct)


def read_body(body: bytes, kind: type[T]) -> T:
    """Read the body of a call; an empty one has no fields.

    Raises:
        ApiError: 400 if it is no JSON object of this form; names the field at fault.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$.")[2]
        raise ApiError(400, "invalid_field", f"the body has another form: {error}", place.rstrip("`") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is not valid JSON: {error}") from None
