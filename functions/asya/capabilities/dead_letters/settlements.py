"""Dismissals of failures, and refusals to replay what is settled (`protocol §12.replay.again`, `§13.dismiss`)."""

import shlex

import msgspec
from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.api_errors import ApiError, ErrorCode, read_body
from asya.protocol.task import ReplayLink, Resolution

REASON_LIMIT = 1024
"""Characters of a reason."""


class DismissRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A dismissal, or the end of one.

    Attributes:
        reason: why nothing has to be done about the failure.
        undo: open the failure again.
    """

    reason: str = ""
    undo: bool = False


class Dismissed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response: what became of the task; no `resolution` after an undo."""

    id: str
    resolution: Resolution | None = None


def read_dismissal(body: bytes) -> DismissRequest:
    """Read the request.

    Raises:
        ApiError: 400 with the field at fault.
    """
    wish = read_body(body, DismissRequest)
    reason = wish.reason.strip()
    if wish.undo and reason:
        raise ApiError(400, "invalid_field", "undo takes no reason", "reason")
    if not wish.undo and not 1 <= len(reason) <= REASON_LIMIT:
        problem = f"reason must say in 1 to {REASON_LIMIT:,} characters why nothing has to be done about the failure"
        raise ApiError(400, "invalid_field", problem, "reason")
    return replace(wish, reason=reason)


SETTLED: frozenset[str] = frozenset({"replayed", "dismissed", "overtaken"})
"""The codes of the refusals."""

_CODES: dict[str, ErrorCode] = {
    "replayed": "replayed",
    "redriven": "replayed",
    "dismissed": "dismissed",
    "overtaken": "overtaken",
}
_STATES = {
    states.PENDING: "is pending",
    states.RUNNING: "runs",
    states.PAUSED: "is paused",
    states.SUCCEEDED: "has succeeded",
    states.FAILED: "has failed",
    states.CANCELED: "was canceled",
}


def settled_error(task_id: str, resolution: Resolution) -> ApiError:
    """The error 409 of a task that is settled; it names what settled it, and what to type."""
    other = resolution.task or ""
    state = _STATES[resolution.status or states.PENDING]
    match resolution.how:
        case "dismissed":
            what = f"{task_id!r} was dismissed by {resolution.by}: {resolution.reason}"
        case "overtaken":
            what = f"{task_id!r} was overtaken by {other!r}, which {state}"
        case _:
            what = f"{task_id!r} was replayed as {other!r}, which {state}"
    show = f"`asya status {shlex.quote(other)}` shows it, and " if other else ""
    return ApiError(409, _CODES[resolution.how], f"{what}; {show}`--force` runs {task_id!r} once more")


def other_request_error(task_id: str, link: ReplayLink) -> ApiError:
    """The error 409 of a task whose replay from another place was begun, and perhaps not sent."""
    problem = f"{task_id!r} was replayed as {link.id!r}, from another place ({link.request}), and perhaps not sent"
    return ApiError(409, "replayed", f"{problem}; the same call again sends it, and `--force` starts another one")


def in_progress_error(task_id: str, link: ReplayLink) -> ApiError:
    """The error 409 of a task whose replay another call is about to send."""
    problem = f"another call replays {task_id!r} as {link.id!r} at this moment; repeat this one later"
    return ApiError(409, "idempotency_in_progress", problem, retry_after=5)
